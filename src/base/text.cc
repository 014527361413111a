#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace tocsin {
namespace {

struct Symbol {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;
};

// The first character of a non-empty text, by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
Symbol first_symbol(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {lead, 1, false};
  std::uint32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {lead, 1, false};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {lead, 1, false};
  return {code, bytes, true};
}

struct Range {
  std::uint32_t first, last;
};

template <std::size_t n>
bool is_in(const std::array<Range, n>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) { return r.first <= code && code <= r.last; });
}

constexpr std::array kUnsafe = {Range{0, 0x1F},        Range{0x7F, 0x9F},     Range{0x061C, 0x061C},
                                Range{0x200E, 0x200F}, Range{0x2028, 0x202E}, Range{0x2066, 0x2069},
                                Range{0xFEFF, 0xFEFF}, Range{0xFFF9, 0xFFFB}, Range{0xE0000, 0xE0FFF}};
constexpr std::array kZeroWidth = {
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD}, Range{0x064B, 0x065F}, Range{0x1AB0, 0x1AFF},
    Range{0x1DC0, 0x1DFF}, Range{0x200B, 0x200D}, Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F}};
constexpr std::array kWide = {
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},  Range{0x2614, 0x2615},
    Range{0x26A1, 0x26A1},   Range{0x2705, 0x2705},   Range{0x274C, 0x274C},  Range{0x2E80, 0x303E},
    Range{0x3041, 0xA4CF},   Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},  Range{0xF900, 0xFAFF},
    Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},  Range{0x1F300, 0x1F64F},
    Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1FAFF}, Range{0x20000, 0x3FFFD}};

std::size_t width_of(std::uint32_t code) { return is_in(kZeroWidth, code) ? 0 : is_in(kWide, code) ? 2 : 1; }

std::string escape(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  char text[16];
  std::snprintf(text, sizeof text,
                code <= 0xFF     ? "\\x%02x"
                : code <= 0xFFFF ? "\\u%04x"
                                 : "\\U%08x",
                static_cast<unsigned>(code));
  return text;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!is_space)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Symbol symbol = first_symbol(text);
    if (symbol.is_valid && !is_in(kUnsafe, symbol.code))
      safe += text.substr(0, symbol.bytes);
    else
      safe += escape(symbol.code);
    text.remove_prefix(symbol.bytes);
  }
  return safe;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Symbol symbol = first_symbol(text);
    width += width_of(symbol.code);
    text.remove_prefix(symbol.bytes);
  }
  return width;
}

std::string clip(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::size_t used = 0, end = 0;
  while (end < text.size()) {
    const Symbol symbol = first_symbol(text.substr(end));
    if (used + width_of(symbol.code) > width - 1) break;
    used += width_of(symbol.code);
    end += symbol.bytes;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace tocsin
