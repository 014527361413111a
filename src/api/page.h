// Pagination of lists that are held in memory, by the query parameters "limit" and "cursor" (opaque).
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

// `list`: name of the list, part of its cursors, so that a cursor of another list is refused.
std::optional<Problem> read_page_request(const Call& call, std::string_view list, PageRequest& request);
std::string page_cursor(std::string_view list, std::string_view after);
// The query parameters, for the route.
std::vector<Parameter> page_parameters(const std::string& things);

// Closes the list "items" and the object: `after` is the key of the last item when more follow.
void end_page(JsonWriter& out, std::string_view list, const std::optional<std::string>& after);

}  // namespace tocsin
