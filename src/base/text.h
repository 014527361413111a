// Makes text safe for a terminal or one line, and measures its width there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tocsin {

// Server data made safe to show: control characters, invalid UTF-8 and direction overrides become escapes (\n, \x1b,
// \u202e), so that stored text cannot move the cursor, forge a line or reorder what is read.
std::string printable(std::string_view text);

// The text with each run of white space as one space, and none at its end: messages of libraries have several lines.
std::string one_line(std::string_view text);

// Columns taken by valid UTF-8: East Asian wide characters and emoji count two, combining marks none.
std::size_t display_width(std::string_view text);

// The beginning of valid UTF-8, in at most `width` columns. A cut text ends with an ellipsis, which is counted.
std::string clip(std::string_view text, std::size_t width);

}  // namespace tocsin
