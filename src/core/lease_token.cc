#include "core/lease_token.h"

#include <charconv>
#include <cstdio>

namespace tocsin {

std::string lease_token_text(ClaimToken token) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(token));
  return text;
}

std::optional<ClaimToken> lease_token_from_text(std::string_view text) {
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  const bool is_token = text.size() == 16 && error == std::errc() && end == text.data() + text.size();
  return is_token ? std::optional(static_cast<ClaimToken>(bits)) : std::nullopt;
}

}  // namespace tocsin
