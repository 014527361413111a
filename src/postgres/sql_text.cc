#include "postgres/sql_text.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"

namespace tocsin::sql {
namespace {

using Value = Values::value_type;

std::string_view text_of(std::string_view name) {
  const auto all = files();
  const auto found = std::ranges::lower_bound(all, name, {}, &File::name);
  TOCSIN_ASSERT(found != all.end() && found->name == name);
  return found->text;
}

// Without comments, empty lines and spaces at the end of lines. No statement has "--" inside a literal.
std::string without_comments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find("--"));
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    if (line.empty()) continue;
    if (!out.empty()) out += '\n';
    out += line;
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

// The values of "a = 1 | b = 2", followed by `outer`: the first of a name counts.
std::vector<Value> values_of(std::string_view given, std::span<const Value> outer) {
  std::vector<Value> values;
  while (!given.empty()) {
    const auto end = std::min(given.find('|'), given.size());
    const std::string_view one = given.substr(0, end);
    const auto equals = one.find('=');
    TOCSIN_ASSERT(equals != std::string_view::npos);
    values.emplace_back(trimmed(one.substr(0, equals)), trimmed(one.substr(equals + 1)));
    given.remove_prefix(std::min(end + 1, given.size()));
  }
  values.insert(values.end(), outer.begin(), outer.end());
  return values;
}

std::string filled(std::string_view name, std::span<const Value> values) {
  std::string text = without_comments(text_of(name));
  for (std::size_t begin = 0; (begin = text.find("{{", begin)) != std::string::npos;) {
    const std::size_t end = text.find("}}", begin);
    TOCSIN_ASSERT(end != std::string::npos);
    const std::string inside = text.substr(begin + 2, end - begin - 2);
    const auto name_end = std::min(inside.find_first_of(" \n"), inside.size());
    const std::string key = inside.substr(0, name_end);
    const std::string_view given = trimmed(std::string_view(inside).substr(name_end));
    const auto found = std::ranges::find(values, std::string_view(key), &Value::first);
    const std::string value =
        found != values.end() ? std::string(found->second) : filled("parts/" + key, values_of(given, values));
    text.replace(begin, end + 2 - begin, value);
    begin += value.size();
  }
  return text;
}

}  // namespace

std::string statement(std::string_view name, Values values) {
  return filled(name, std::span<const Value>(values.begin(), values.size()));
}

std::string set_local(std::string_view setting, std::string_view value) {
  return statement("parts/set_local", {{"setting", setting}, {"value", value}}) + "; ";
}

}  // namespace tocsin::sql
