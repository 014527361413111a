// A claim token as text, for consumers and webhook receivers: it has 64 bits, more than a JSON number holds exactly.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

std::string lease_token_text(ClaimToken token);  // sixteen hexadecimal digits, lower case

// Either case. nullopt: not sixteen hexadecimal digits.
std::optional<ClaimToken> lease_token_from_text(std::string_view text);

}  // namespace tocsin
