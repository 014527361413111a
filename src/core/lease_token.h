// A claim token as consumers and receivers see it: 64 random bits, which no JSON number holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

std::string lease_token_text(ClaimToken token);  // sixteen hexadecimal digits

// nullopt: not sixteen hexadecimal digits.
std::optional<ClaimToken> lease_token_from_text(std::string_view text);

}  // namespace tocsin
