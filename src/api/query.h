// Values of query parameters and cursors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/router.h"
#include "tocsin/clock.h"

namespace tocsin {

// nullopt: the text is no number.
std::optional<std::int64_t> number_from(std::string_view text);

// Reads the parameter `name`, an RFC 3339 time, if it is there.
std::optional<Problem> read_time(const Call& call, const char* name, std::optional<WallTime>& time);
// Reads the parameter "limit", 1..kMostPerPage, if it is there.
std::optional<Problem> read_limit(const Call& call, int& limit);

}  // namespace tocsin
