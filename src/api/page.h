// Pagination of lists that are held in memory (nodes, endpoints, types). The query parameters are "limit" and "cursor";
// a cursor is opaque to callers. Used by the handlers of these lists. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json_writer.h"
#include "api/router.h"

namespace tocsin {

inline constexpr int kMostPerPage = 1000;

// A handler sorts the items by a key, and writes the first `limit` items whose key is greater than `after`. Items with
// equal keys must stand on one page, even if it exceeds the limit: the next page would leave them out.
struct PageRequest {
  int limit = 100;    // number of items, 1..kMostPerPage
  std::string after;  // key of the last item of the page before; empty: from the beginning
};

// Reads both parameters into `request`. `list`: name of the list, a part of its cursors, so that a cursor of another
// list is refused. nullopt: both are valid; Problem (400): one is not.
std::optional<Problem> read_page_request(const Call& call, std::string_view list, PageRequest& request);
std::string page_cursor(std::string_view list, std::string_view after);
// The two parameters for Route::query; with_page_parameters() adds them to `others`. `items`: what the list has, such
// as "Nodes", for the API description.
std::vector<Parameter> page_parameters(const std::string& items);
std::vector<Parameter> with_page_parameters(const std::string& items, std::vector<Parameter> others);

// Ends the array "items", writes "next_cursor", and ends the object. `after`: key of the last item written, if more
// items follow; nullopt: none follow, and next_cursor is null.
void end_page(JsonWriter& out, std::string_view list, const std::optional<std::string>& after);

}  // namespace tocsin
