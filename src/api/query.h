// Reads values of query parameters and cursors. Used by the handlers of lists and reports. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/router.h"
#include "tocsin/clock.h"

namespace tocsin {

// A decimal integer of 64 bits; nullopt: any other text.
std::optional<std::int64_t> number_from(std::string_view text);

// Each reads a query parameter; without the parameter the output keeps its value. nullopt: well; Problem (400): the
// value is malformed. read_time(): the parameter `name`, an RFC 3339 time. read_limit(): "limit", 1..kMostPerPage
// (page.h).
std::optional<Problem> read_time(const Call& call, const char* name, std::optional<WallTime>& time);
std::optional<Problem> read_limit(const Call& call, int& limit);

}  // namespace tocsin
