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

// A handler sorts the items by a key and writes those whose key is greater than `after`. Items with equal keys must
// stand on one page.
struct PageRequest {
  int limit = 100;    // items, 1..kMostPerPage
  std::string after;  // key of the last item of the page before; empty: from the beginning
};

// Reads both parameters. `list`: name of the list, part of its cursors, so that a cursor of another list is refused.
std::optional<Problem> read_page_request(const Call& call, std::string_view list, PageRequest& request);
std::string page_cursor(std::string_view list, std::string_view after);
// The parameters for the API description. `items`: what the list has, such as "Nodes".
std::vector<Parameter> page_parameters(const std::string& items);

// Ends the array "items", writes "next_cursor", and ends the object. `after`: key of the last item if more follow.
void end_page(JsonWriter& out, std::string_view list, const std::optional<std::string>& after);

}  // namespace tocsin
