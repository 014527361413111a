// Pages of lists that are held in memory: "limit", an opaque "cursor", and where the next page begins.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json_writer.h"
#include "api/router.h"

namespace tocsin {

inline constexpr int kMostPerPage = 1000;

struct PageRequest {
  int limit = 100;
  std::string after;  // what the cursor holds; empty: from the beginning
};

// `list` keeps the cursor of one list from being taken for one of another.
std::optional<Problem> read_page_request(const Call& call, std::string_view list, PageRequest& request);
std::string page_cursor(std::string_view list, std::string_view after);
// The query parameters, for the route.
std::vector<Parameter> page_parameters(const std::string& things);

// Closes the list "items" and the object: `after` is the key of the last item when more follow.
void end_page(JsonWriter& out, std::string_view list, const std::optional<std::string>& after);

}  // namespace tocsin
