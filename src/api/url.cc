#include "api/url.h"

#include "base/utf8.h"

namespace tocsin {
namespace {

constexpr std::string_view kBase64Url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return {};
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return {};
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  if (out.find('\0') != out.npos || !is_utf8(out)) return {};
  return out;
}

// Calls `use` with each piece between separators until it returns false; then returns false.
template <class Use>
bool for_each_piece(std::string_view text, char separator, Use use) {
  for (;;) {
    const std::size_t end = text.find(separator);
    if (!use(text.substr(0, end))) return false;
    if (end == text.npos) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<Target> target_from_text(std::string_view text) {
  if (!text.starts_with('/')) return {};
  Target target;
  const std::size_t mark = text.find('?');
  const std::string_view path = text.substr(1, mark == text.npos ? mark : mark - 1);
  const auto add_segment = [&](std::string_view piece) {
    auto segment = decoded(piece, false);
    if (segment) target.path.push_back(std::move(*segment));
    return segment.has_value();
  };
  if (!path.empty() && !for_each_piece(path, '/', add_segment)) return {};

  const auto add_parameter = [&](std::string_view piece) {
    if (piece.empty()) return true;
    const std::size_t equals = piece.find('=');
    auto name = decoded(piece.substr(0, equals), true);
    auto value = decoded(equals == piece.npos ? std::string_view() : piece.substr(equals + 1), true);
    if (!name) return false;
    if (value)
      target.query.emplace_back(std::move(*name), std::move(*value));
    else if (!target.malformed)
      target.malformed = std::move(*name);
    return true;
  };
  if (mark != text.npos && !for_each_piece(text.substr(mark + 1), '&', add_parameter)) return {};
  return target;
}

std::string base64url(std::string_view bytes) {
  std::string text;
  unsigned bits = 0;
  int n = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (n += 8; n >= 6; n -= 6) text += kBase64Url[bits >> (n - 6) & 63];
  }
  if (n > 0) text += kBase64Url[bits << (6 - n) & 63];
  return text;
}

std::optional<std::string> base64url_decoded(std::string_view text) {
  std::string bytes;
  unsigned bits = 0;
  int n = 0;
  for (const char c : text) {
    const std::size_t digit = kBase64Url.find(c);
    if (digit == kBase64Url.npos) return {};
    bits = bits << 6 | static_cast<unsigned>(digit);
    n += 6;
    if (n >= 8) {
      n -= 8;
      bytes += static_cast<char>(bits >> n & 255);
    }
  }
  return bytes;
}

}  // namespace tocsin
