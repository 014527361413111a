#include "api/json_builder.h"

#include <algorithm>
#include <cstdlib>

namespace tocsin {
namespace {

constexpr std::size_t kLongestNumber =
    400;  // no double has more digits before the point; PostgreSQL's numeric takes it too

// What the numbers of one verbatim field may take beyond their text when they are written in full, as PostgreSQL gives
// them back: 1e308 has 309 digits.
constexpr std::size_t kMostExpansion = 64 << 10;

std::size_t expansion_of(const std::string& number) {
  const std::size_t e = number.find_first_of("eE");
  if (e == number.npos) return 0;
  // A double's exponent has few digits, but for leading zeros.
  return static_cast<std::size_t>(std::abs(std::strtol(number.c_str() + e + 1, nullptr, 10)));
}

bool has_nonzero_digit(const std::string& number) {
  const std::string mantissa = number.substr(0, number.find_first_of("eE"));
  return mantissa.find_first_of("123456789") != mantissa.npos;
}

}  // namespace

bool JsonBuilder::number_float(double value, const std::string& written) {
  if (written.size() > kLongestNumber || (value == 0 && has_nonzero_digit(written)))
    return fail("The number is out of range.");
  if (!is_verbatim()) return add(value);
  expansion_ += expansion_of(written);
  if (expansion_ > kMostExpansion) return fail("Its numbers are too long when they are written in full.");
  return wrote(text_.raw(written));
}

bool JsonBuilder::string(std::string& value) {
  if (value.find('\0') != value.npos) return fail("The text holds a NUL character.");
  return is_verbatim() ? wrote(text_.value(value)) : add(std::move(value));
}

bool JsonBuilder::key(std::string& name) {
  Level& level = levels_.back();
  level.key = name;
  if (name.find('\0') != name.npos) return fail("The name of a field holds a NUL character.");
  if (level.container == nullptr) {
    text_.key(name);
    level.keys.push_back(std::move(name));
    return true;
  }
  const auto [place, is_new] = level.container->get_ref<json::object_t&>().emplace(std::move(name), nullptr);
  level.slot = &place->second;
  return is_new || fail("The field is given twice.");
}

bool JsonBuilder::is_verbatim() const {
  if (verbatim_depth_ > 0) return true;
  if (verbatim_name_.empty() || levels_.empty()) return false;
  return levels_.back().slot != nullptr && levels_.back().key == verbatim_name_;
}

bool JsonBuilder::add(json value) {
  if (++values_ > kMaxJsonValues) return fail("There are too many values.");
  if (levels_.empty()) {
    root_ = std::move(value);
  } else if (Level& level = levels_.back(); level.container->is_array()) {
    level.container->push_back(std::move(value));
  } else {
    *level.slot = std::move(value);
  }
  return true;
}

// After each piece of verbatim text: with its last one the text is a value.
bool JsonBuilder::wrote(JsonWriter&) {
  if (verbatim_depth_ > 0) return true;
  *levels_.back().slot = std::move(verbatim_);
  verbatim_.clear();
  expansion_ = 0;
  text_ = JsonWriter(verbatim_);
  return true;
}

bool JsonBuilder::start(json::value_t kind) {
  if (levels_.size() >= kMaxJsonDepth)
    return fail("Nesting is deeper than " + std::to_string(kMaxJsonDepth) + " levels.");
  if (is_verbatim()) {
    kind == json::value_t::object ? text_.begin_object() : text_.begin_array();
    ++verbatim_depth_;
    levels_.emplace_back();
    return true;
  }
  if (++values_ > kMaxJsonValues) return fail("There are too many values.");
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
  if (std::adjacent_find(level.keys.begin(), level.keys.end()) != level.keys.end())
    return fail("A field inside is given twice.");
  --verbatim_depth_;
  return wrote(is_object ? text_.end_object() : text_.end_array());
}

bool JsonBuilder::parse_error(std::size_t position, const std::string&, const json::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": what comes before is no news
  // to a caller.
  std::string_view detail = error.what();
  if (const std::size_t colon = detail.find("column "); colon != detail.npos)
    detail.remove_prefix(std::min(detail.find(": ", colon) + 2, detail.size()));
  if (error.id == 406) return fail("The number is out of range.");
  problem_ = Problem{400, "The body is not JSON: at byte " + std::to_string(position) + ": " +
                              std::string(detail.substr(0, 200)) + "."};
  return false;
}

bool JsonBuilder::fail(std::string detail) {
  problem_ = Problem{400, std::move(detail), path()};
  return false;
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

}  // namespace tocsin
