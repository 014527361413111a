#include "cli/print.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <utility>

#include "base/text.h"
#include "cli/duration.h"
#include "cli/table.h"

namespace tocsin {
namespace {

constexpr std::size_t kIndent = 2;

struct Line {
  std::string name;
  std::string value;
};
struct Section {
  std::string name;
  const Json* items;
};

bool is_list_of_objects(const Json& value) { return value.is_array() && !value.empty() && value.front().is_object(); }

// Milliseconds since 1970 of "2026-03-01T12:00:00.250Z"; nullopt for other text.
std::optional<double> epoch_milliseconds(const std::string& text) {
  if (text.size() < 20 || text[10] != 'T' || text.back() != 'Z') return std::nullopt;
  tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest) return std::nullopt;
  double fraction = 0;
  if (*rest == '.') {
    char* end = nullptr;
    fraction = std::strtod(rest, &end);
    rest = end;
  }
  if (*rest != 'Z') return std::nullopt;
  return 1000 * (static_cast<double>(::timegm(&parts)) + fraction);
}

double now_ms() {
  using namespace std::chrono;
  return static_cast<double>(duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch()).count());
}

// By its name, for a business key may look like a time.
bool is_time(std::string_view key) {
  static constexpr std::string_view kEnds[] = {"_at", "_time", "until", "gmt_create", "gmt_modified", "slot", "_day"};
  return key == "at" || std::ranges::any_of(kEnds, [&](std::string_view end) { return key.ends_with(end); });
}

// Milliseconds are shown as durations, under a name without the unit.
bool is_length(const std::string& key) { return key.ends_with("_ms"); }
std::string length(const Json& value) { return value.is_number() ? format_duration(value.get<double>()) : cell(value); }
std::string heading(const std::string& key) { return words(is_length(key) ? key.substr(0, key.size() - 3) : key); }

// Attributes and settings of the caller stay JSON: their keys are not ours to read.
bool stays_json(const std::string& key) { return key == "attribute" || key == "headers"; }

void collect(const std::string& prefix, const Json& object, std::vector<Line>& lines, std::vector<Section>& sections) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || (value.is_array() && value.empty())) continue;
    const std::string name = prefix.empty() ? heading(key) : prefix + " " + heading(key);
    if (value.is_object() && !stays_json(key))
      collect(name, value, lines, sections);
    else if (is_list_of_objects(value))
      sections.push_back({name, &value});
    else if (is_length(key))
      lines.push_back({name, length(value)});
    else if (value.is_string() && is_time(key))
      lines.push_back({name, readable_time(value.get<std::string>(), true)});
    else
      lines.push_back({name, cell(value)});
  }
}

// Prints text after `indent` columns that are printed already; further lines are indented under it.
void print_wrapped(std::ostream& out, std::string text, std::size_t indent, std::size_t width) {
  const std::size_t columns = width > indent + 10 ? width - indent : 10;
  while (display_width(text) > columns) {
    // clip() ends with an ellipsis of one column and three bytes, so it shows how many bytes fill all columns but one.
    const std::size_t fits = clip(text, columns).size() - 3;
    const std::size_t space = text.rfind(' ', fits);
    const std::size_t end = space == std::string::npos || space == 0 ? fits : space;
    out << text.substr(0, end) << '\n' << std::string(indent, ' ');
    text.erase(0, end + (text[end] == ' ' ? 1 : 0));
  }
  out << text << '\n';
}

// A message gets lines of its own; the other members of its object stand before it.
void print_messages(std::ostream& out, const Json& items, std::size_t width) {
  for (const Json& item : items) {
    std::string facts;
    for (const auto& [key, value] : item.items())
      if (key != "message")
        facts += (facts.empty() ? "" : ", ") + (value.is_string() && key != "started_at" ? "" : heading(key) + " ") +
                 cell(item, key.c_str());
    out << std::string(kIndent, ' ');
    print_wrapped(out, facts, kIndent, width);
    out << std::string(2 * kIndent, ' ');
    print_wrapped(out, cell(item, "message"), 2 * kIndent, width);
  }
}

}  // namespace

std::string words(const std::string& key) {
  std::string text = printable(key);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

bool note_missing(std::ostream& out, const Json& reply) {
  bool is_incomplete = false;
  for (const auto& [member, text] :
       {std::pair{"missing", "Incomplete: these databases do not answer:"},
        std::pair{"in_doubt", "In doubt: these databases may have done it, but their answer was lost. Ask again:"}}) {
    const auto names = reply.find(member);
    if (names == reply.end() || !names->is_array() || names->empty()) continue;
    is_incomplete = true;
    out << text;
    for (const Json& name : *names) out << ' ' << cell(name);
    out << '\n';
  }
  return is_incomplete;
}

void print_json(std::ostream& out, const Json& value) {
  out << value.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_json(std::ostream& out, const RestReply& reply) { out << reply.text << '\n'; }

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return Json(std::round(number * 1000) / 1000).dump();
  }
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string cell(const Json& object, const char* key) {
  const auto value = object.is_object() ? object.find(key) : object.end();
  if (value == object.end()) return "-";
  return value->is_string() && is_time(key) ? readable_time(value->get<std::string>(), false) : cell(*value);
}

std::string readable_time(const std::string& text, bool relative) {
  const auto at = epoch_milliseconds(text);
  if (!at) return printable(text);
  std::string readable = text;
  readable[10] = ' ';
  if (readable.size() > 24) readable.replace(23, std::string::npos, "Z");  // milliseconds are enough to read
  if (!relative) return readable;
  const double ahead = *at - now_ms();
  // Tenths of a millisecond of distance would be noise: clocks differ by more.
  const std::string distance = format_duration(std::round(std::abs(ahead)));
  return readable + (ahead >= 0 ? " (in " + distance + ")" : " (" + distance + " ago)");
}

void print_record(std::ostream& out, const Json& object, std::size_t width) {
  std::vector<Line> lines;
  std::vector<Section> sections;
  collect("", object, lines, sections);
  std::size_t names = 0;
  for (const Line& line : lines) names = std::max(names, display_width(line.name));
  for (const Line& line : lines) {
    out << std::string(kIndent, ' ') << line.name << std::string(names - display_width(line.name) + 2, ' ');
    print_wrapped(out, line.value, kIndent + names + 2, width);
  }
  for (const Section& section : sections) {
    out << '\n' << section.name << '\n';
    if (section.items->front().contains("message"))
      print_messages(out, *section.items, width);
    else
      print_objects(out, *section.items, width);
  }
}

void print_text(std::ostream& out, const std::string& text, std::size_t width) { print_wrapped(out, text, 0, width); }

namespace {

std::string object_cell(const Json& item, const std::string& key) {
  return is_length(key) && item.contains(key) ? length(item[key]) : cell(item, key.c_str());
}

// For objects that fit into no table of this width: a line with the first value of the object, and the second if that
// is text, then lines with the other values by name.
void print_records(std::ostream& out, const Json& items, const std::vector<std::string>& keys, std::size_t width) {
  for (const Json& item : items) {
    const bool is_pair = item.contains(keys[1]) && item[keys[1]].is_string();
    print_wrapped(out, object_cell(item, keys[0]) + (is_pair ? "  " + object_cell(item, keys[1]) : ""), 0, width);
    std::string line;
    const auto end_line = [&] {
      if (display_width(line) > width)
        print_wrapped(out, line, 2 * kIndent, width);
      else if (!line.empty())
        out << line << '\n';
      line.clear();
    };
    for (std::size_t i = is_pair ? 2 : 1; i < keys.size(); ++i) {
      if (!item.contains(keys[i]) || item[keys[i]].is_null()) continue;
      const std::string field = "  " + heading(keys[i]) + ' ' + object_cell(item, keys[i]);
      if (display_width(line) + display_width(field) > width) end_line();
      line += field;
    }
    end_line();
  }
}

}  // namespace

void print_objects(std::ostream& out, const Json& items, std::size_t width) {
  std::vector<std::string> keys;
  for (const Json& item : items)
    for (const auto& [key, value] : item.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  std::vector<Column> columns;
  for (const std::string& key : keys) {
    const bool is_number = std::all_of(items.begin(), items.end(), [&](const Json& item) {
      const auto value = item.find(key);
      return value == item.end() || value->is_number() || value->is_null();
    });
    columns.push_back({heading(key), is_number ? Column::Align::right : Column::Align::left, !is_number});
  }
  Table table(std::move(columns));
  for (const Json& item : items) {
    std::vector<std::string> cells;
    cells.reserve(keys.size());
    for (const std::string& key : keys) cells.push_back(object_cell(item, key));
    table.add(std::move(cells));
  }
  if (keys.size() < 3 || table.fits(width)) return table.print(out, width);
  print_records(out, items, keys, width);
}

}  // namespace tocsin
