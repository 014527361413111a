#include "postgres/sql_text.h"

#include <algorithm>

#include "base/assert.h"

namespace tocsin::sql {
namespace {

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

std::string filled(std::string_view name, Values values) {
  std::string text = without_comments(text_of(name));
  for (std::size_t begin = 0; (begin = text.find("{{", begin)) != std::string::npos;) {
    const std::size_t end = text.find("}}", begin);
    TOCSIN_ASSERT(end != std::string::npos);
    const std::string key = text.substr(begin + 2, end - begin - 2);
    const auto given =
        std::ranges::find(values, std::string_view(key), &std::pair<std::string_view, std::string_view>::first);
    const std::string value = given != values.end() ? std::string(given->second) : filled("parts/" + key, values);
    text.replace(begin, end + 2 - begin, value);
    begin += value.size();
  }
  return text;
}

}  // namespace

std::string statement(std::string_view name, Values values) { return filled(name, values); }

}  // namespace tocsin::sql
