#include "api/json_builder.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/json_writer.h"

namespace tocsin {
namespace {

using nlohmann::json;

// No double has more digits before the point; PostgreSQL's numeric takes it too.
constexpr std::size_t kLongestNumber = 400;

// What the numbers of one verbatim field may take beyond their text when they are written in full, as PostgreSQL gives
// them back: 1e308 has 309 digits.
constexpr std::size_t kMostExpansion = 64 << 10;

constexpr std::size_t kMostSkippedDepth = 1000;  // the parser keeps a byte or so per level, and no stack

// PostgreSQL's numeric refuses a number with more digits after the point. Only a zero with a large negative exponent
// has more and is a double. The digits before the point are fewer than numeric takes in every double.
constexpr long kMostScale = 16'383;

// A double's exponent has few digits, but for leading zeros and the exponent of a zero.
long exponent_of(std::string_view number) {
  const std::size_t e = number.find_first_of("eE");
  if (e == number.npos) return 0;
  constexpr long kMost = 1'000'000'000;
  return std::clamp(std::strtol(std::string(number.substr(e + 1)).c_str(), nullptr, 10), -kMost, kMost);
}

std::size_t expansion_of(std::string_view number) { return static_cast<std::size_t>(std::abs(exponent_of(number))); }

// How many digits it has after the point when it is written without an exponent; none if negative.
long scale_of(std::string_view number) {
  const std::size_t end = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), end);
  const auto digits = static_cast<long>(end - std::min(point + 1, end));
  return digits - exponent_of(number);
}

// The events of Boost.JSON's parser. Each returns whether parsing continues. The data members are what must survive
// from one event to the next.
class JsonBuilder {
 public:
  using Ec = boost::system::error_code;
  using Text = boost::json::string_view;

  // Boost's own limits are not asked.
  static constexpr std::size_t max_array_size = SIZE_MAX, max_object_size = SIZE_MAX, max_string_size = SIZE_MAX,
                               max_key_size = SIZE_MAX;

  JsonBuilder(json& root, std::string_view verbatim, JsonItems* items)
      : root_(root), verbatim_name_(verbatim), items_(items) {}

  bool on_document_begin(Ec&) { return true; }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec& ec) { return skips_begin() || stop_if_failed(start(json::value_t::object), ec); }
  bool on_array_begin(Ec& ec) { return skips_begin() || stop_if_failed(start(json::value_t::array), ec); }
  bool on_object_end(std::size_t, Ec& ec) { return skips_end() || stop_if_failed(end(true), ec); }
  bool on_array_end(std::size_t, Ec& ec) { return skips_end() || stop_if_failed(end(false), ec); }
  bool on_key_part(Text part, std::size_t, Ec&) { return keep(part); }
  bool on_key(Text rest, std::size_t, Ec& ec) {
    const std::string_view name = whole(rest);
    return is_skipping() || stop_if_failed(key(name), ec);
  }
  bool on_string_part(Text part, std::size_t, Ec&) { return keep(part); }
  bool on_string(Text rest, std::size_t, Ec& ec) {
    const std::string_view value = whole(rest);
    return is_skipping() || stop_if_failed(string(value), ec);
  }
  bool on_number_part(Text part, Ec&) { return keep(part); }
  bool on_int64(std::int64_t value, Text rest, Ec& ec) {
    const std::string_view written = whole(rest);
    return is_skipping() || stop_if_failed(integer(value, written), ec);
  }
  bool on_uint64(std::uint64_t value, Text rest, Ec& ec) {
    const std::string_view written = whole(rest);
    return is_skipping() || stop_if_failed(integer(value, written), ec);
  }
  bool on_double(double, Text rest, Ec& ec) {
    const std::string_view written = whole(rest);
    return is_skipping() || stop_if_failed(real(written), ec);
  }
  bool on_bool(bool value, Ec& ec) {
    return is_skipping() || stop_if_failed(is_verbatim() ? wrote(text_.value(value)) : add(value), ec);
  }
  bool on_null(Ec& ec) {
    return is_skipping() || stop_if_failed(is_verbatim() ? wrote(text_.null()) : add(nullptr), ec);
  }
  bool on_comment_part(Text, Ec&) { return true; }
  bool on_comment(Text, Ec&) { return true; }

  std::optional<Problem> take_problem() { return std::move(problem_); }

 private:
  struct Level {
    json* container = nullptr;      // null inside verbatim text
    json* slot = nullptr;           // objects: where the value of the current key goes
    std::string key;                // objects: the current key
    std::vector<std::string> keys;  // objects inside verbatim text: all keys so far
  };

  // The parser stops only for an error code.
  static bool stop_if_failed(bool is_well, Ec& ec) {
    if (!is_well) ec = make_error_code(boost::system::errc::operation_canceled);
    return is_well;
  }

  // The parser passes a text with escapes in parts.
  bool keep(Text part) {
    if (is_whole_) parts_.clear();
    is_whole_ = false;
    parts_.append(part.data(), part.size());
    return true;
  }
  std::string_view whole(Text rest) {
    if (is_whole_) return {rest.data(), rest.size()};
    keep(rest);
    is_whole_ = true;
    return parts_;
  }

  bool key(std::string_view name);
  bool string(std::string_view value);
  bool real(std::string_view written);
  template <class Int>
  bool integer(Int value, std::string_view written) {
    if (is_verbatim()) return wrote(text_.raw(written));
    return value < 0 ? add(value) : add(static_cast<std::uint64_t>(value));
  }
  bool start(json::value_t kind);
  bool end(bool is_object);
  bool is_verbatim() const;
  bool add(json value);
  bool wrote(JsonWriter&);
  bool out_of_range() { return fail("The number is out of range."); }
  bool fail(std::string detail);
  bool fail_whole(std::string detail);
  std::string path() const;

  // The rest of an item after a mistake in it is skipped.
  bool is_skipping() const { return skipped_depth_ > 0; }
  bool skips_begin();
  bool skips_end();
  bool is_in_item() const;

  json& root_;
  std::optional<Problem> problem_;
  std::vector<Level> levels_;
  std::string parts_;
  bool is_whole_ = true;  // parts_ has no unfinished text
  const std::string_view verbatim_name_;
  JsonItems* const items_;         // or null
  std::size_t skipped_depth_ = 0;  // containers that are open since the item at fault began, itself included
  std::string verbatim_;
  JsonWriter text_{verbatim_};
  std::size_t verbatim_depth_ = 0;
  std::size_t expansion_ = 0;  // of the numbers in the verbatim text so far
  std::size_t values_ = 0;
};

bool JsonBuilder::real(std::string_view written) {
  double value = 0;
  const auto read = std::from_chars(written.data(), written.data() + written.size(), value);
  if (written.size() > kLongestNumber || read.ec != std::errc{}) return out_of_range();
  if (!is_verbatim()) return add(value);
  if (scale_of(written) > kMostScale) return out_of_range();
  expansion_ += expansion_of(written);
  if (expansion_ > kMostExpansion) return fail("Its numbers are too long when they are written in full.");
  return wrote(text_.raw(written));
}

bool JsonBuilder::string(std::string_view value) {
  if (value.find('\0') != value.npos) return fail("The text holds a NUL character or a lone surrogate.");
  return is_verbatim() ? wrote(text_.value(value)) : add(value);
}

bool JsonBuilder::key(std::string_view name) {
  Level& level = levels_.back();
  level.key = name;
  if (name.find('\0') != name.npos) return fail("The name of a field holds a NUL character or a lone surrogate.");
  if (level.container == nullptr) {
    text_.key(name);
    level.keys.emplace_back(name);
    return true;
  }
  const auto [place, is_new] = level.container->get_ref<json::object_t&>().emplace(name, nullptr);
  level.slot = &place->second;
  return is_new || fail("The field is given twice.");
}

bool JsonBuilder::is_verbatim() const {
  if (verbatim_depth_ > 0) return true;
  if (verbatim_name_.empty() || levels_.empty()) return false;
  return levels_.back().slot != nullptr && levels_.back().key == verbatim_name_;
}

bool JsonBuilder::add(json value) {
  if (++values_ > kMaxJsonValues) return fail_whole("There are too many values.");
  if (levels_.empty()) {
    root_ = std::move(value);
  } else if (Level& level = levels_.back(); level.container->is_array()) {
    level.container->push_back(std::move(value));
  } else {
    *level.slot = std::move(value);
  }
  return true;
}

// Called after each piece of verbatim text; the last one completes the value.
bool JsonBuilder::wrote(JsonWriter&) {
  if (verbatim_depth_ > 0) return true;
  *levels_.back().slot = std::move(verbatim_);
  verbatim_.clear();
  expansion_ = 0;
  text_ = JsonWriter(verbatim_);
  return true;
}

bool JsonBuilder::start(json::value_t kind) {
  if (levels_.size() >= kMaxJsonDepth) {
    if (!fail("Nesting is deeper than " + std::to_string(kMaxJsonDepth) + " levels.")) return false;
    return skips_begin();
  }
  if (is_verbatim()) {
    kind == json::value_t::object ? text_.begin_object() : text_.begin_array();
    ++verbatim_depth_;
    levels_.emplace_back();
    return true;
  }
  if (++values_ > kMaxJsonValues) return fail_whole("There are too many values.");
  json* place = &root_;
  if (levels_.empty()) {
    root_ = json(kind);
  } else if (Level& level = levels_.back(); level.container->is_array()) {
    level.container->push_back(json(kind));
    place = &level.container->back();
  } else {
    *level.slot = json(kind);
    place = level.slot;
  }
  levels_.emplace_back().container = place;
  return true;
}

bool JsonBuilder::end(bool is_object) {
  Level level = std::move(levels_.back());
  levels_.pop_back();
  if (level.container != nullptr) return true;
  std::sort(level.keys.begin(), level.keys.end());
  // The container that ends here is closed already, so after a mistake only the rest of the containers around it is
  // skipped.
  if (std::adjacent_find(level.keys.begin(), level.keys.end()) != level.keys.end())
    return fail("A field inside is given twice.");
  --verbatim_depth_;
  return wrote(is_object ? text_.end_object() : text_.end_array());
}

bool JsonBuilder::fail(std::string detail) {
  if (!is_in_item()) return fail_whole(std::move(detail));
  Problem problem{400, std::move(detail), path()};
  if (levels_.size() == 2 && !add(nullptr)) return false;  // a simple value at fault still takes its place in the list
  items_->problems.emplace(levels_[1].container->size() - 1, std::move(problem));
  skipped_depth_ = levels_.size() - 2;
  // The text of a verbatim field inside the item is dropped with the item.
  while (levels_.size() > 2) levels_.pop_back();
  verbatim_depth_ = 0;
  verbatim_.clear();
  expansion_ = 0;
  text_ = JsonWriter(verbatim_);
  return true;
}

bool JsonBuilder::fail_whole(std::string detail) {
  problem_ = Problem{400, std::move(detail), path()};
  return false;
}

bool JsonBuilder::is_in_item() const {
  return items_ != nullptr && levels_.size() > 1 && levels_[0].key == items_->list && levels_[1].container->is_array();
}

bool JsonBuilder::skips_begin() {
  if (!is_skipping()) return false;
  ++skipped_depth_;
  return true;
}

bool JsonBuilder::skips_end() {
  if (!is_skipping()) return false;
  --skipped_depth_;
  return true;
}

std::string JsonBuilder::path() const {
  std::string path;
  for (std::size_t i = 0; i < levels_.size() && levels_[i].container != nullptr; ++i) {
    const Level& level = levels_[i];
    if (level.container->is_object()) {
      if (!path.empty()) path += '.';
      path += level.key;
    } else {
      const bool has_begun = i + 1 < levels_.size();  // the item at fault is already in the list
      path += '[' + std::to_string(level.container->size() - (has_begun ? 1 : 0)) + ']';
    }
  }
  return path;
}

// The parser stops at an exponent that no int holds. Four digits are out of any range just as well, and let it
// continue.
std::string with_short_exponents(std::string_view text) {
  constexpr std::size_t kMostDigits = 4;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string out;
  out.reserve(text.size());
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    out += c;
    if (c == '"') is_in_string = !is_in_string;
    if (is_in_string && c == '\\' && i + 1 < text.size()) out += text[++i];
    if (is_in_string || (c != 'e' && c != 'E') || i == 0 || !is_digit(text[i - 1])) continue;
    if (i + 1 < text.size() && (text[i + 1] == '-' || text[i + 1] == '+')) out += text[++i];
    const std::size_t begin = i + 1;
    std::size_t end = begin;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::string_view digits = text.substr(begin, end - begin);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.empty() && end > begin) out += '0';
    out += digits.size() > kMostDigits ? std::string(kMostDigits, '9') : std::string(digits);
    i = end - 1;
  }
  return out;
}

// Whether the text has a \u escape of a surrogate there: a leading one if `second` is "89abAB", a trailing one if it is
// "cdefCDEF" (the digits that may follow the D).
bool is_surrogate(std::string_view text, std::size_t at, std::string_view second) {
  const std::string_view escape = text.substr(std::min(at, text.size()), 6);
  return escape.size() == 6 && escape.starts_with("\\u") && (escape[2] == 'd' || escape[2] == 'D') &&
         second.find(escape[3]) != second.npos && escape.find_first_not_of("0123456789abcdefABCDEF", 4) == escape.npos;
}

// The parser stops at a surrogate without the other of its pair. A NUL character is refused as well, and lets it
// continue. Every byte keeps its place.
std::string with_nul_for_lone_surrogates(std::string_view text) {
  constexpr std::string_view kLeading = "89abAB", kTrailing = "cdefCDEF";
  std::string out(text);
  for (std::size_t i = text.find('\\'); i != text.npos; i = text.find('\\', i)) {
    const bool is_leading = is_surrogate(text, i, kLeading);
    const bool is_pair = is_leading && is_surrogate(text, i + 6, kTrailing);
    if (!is_pair && (is_leading || is_surrogate(text, i, kTrailing))) out.replace(i + 2, 4, "0000");
    i += is_pair ? 12 : 2;  // escapes begin with two characters, "\\\\" among them
  }
  return out;
}

}  // namespace

std::optional<Problem> build_json(std::string_view text, std::string_view verbatim, json& root, JsonItems* items) {
  boost::json::parse_options options;
  // The builder refuses deeper nesting before the parser does; a too deep item is skipped, and bounded by the body.
  options.max_depth = items == nullptr ? kMaxJsonDepth + 1 : kMostSkippedDepth;
  boost::json::basic_parser<JsonBuilder> parser(options, root, verbatim, items);
  boost::system::error_code ec;
  const std::size_t read = parser.write_some(/*more=*/false, text.data(), text.size(), ec);
  if (auto problem = parser.handler().take_problem()) return problem;
  if (ec) {
    const bool is_exponent = ec == boost::json::error::exponent_overflow;
    const std::string again = is_exponent ? with_short_exponents(text) : with_nul_for_lone_surrogates(text);
    if (again != text) {
      root = nullptr;
      if (items != nullptr) items->problems.clear();
      return build_json(again, verbatim, root, items);
    }
  }
  if (!ec && read < text.size()) ec = boost::json::error::extra_data;
  if (!ec) return {};
  return Problem{400, "The body is not JSON: at byte " + std::to_string(read) + ": " + ec.message() + "."};
}

}  // namespace tocsin
