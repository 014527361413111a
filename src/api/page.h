// Pagination of lists that are held in memory (nodes, endpoints, types), by the query parameters "limit" and "cursor",
// which is opaque to callers. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json_writer.h"
#include "api/router.h"

namespace tocsin {

inline constexpr int kMostPerPage = 1000;

// A handler sorts the items by a key and writes the first `limit` of those whose key is greater than `after`. Items
// with equal keys must stand on one page, which may exceed the limit for them: the next page would leave them out.
struct PageRequest {
  int limit = 100;    // items, 1..kMostPerPage
  std::string after;  // key of the last item of the page before; empty: from the beginning
};

// Reads both parameters into `request`. `list`: a name that is part of the cursors, so that a cursor of another list is
// refused. nullopt: well; or the problem (400).
std::optional<Problem> read_page_request(const Call& call, std::string_view list, PageRequest& request);
std::string page_cursor(std::string_view list, std::string_view after);
// The parameters for Route::query. `items`: what the list has, such as "Nodes"; for the API description.
std::vector<Parameter> page_parameters(const std::string& items);
std::vector<Parameter> with_page_parameters(const std::string& items, std::vector<Parameter> others);

// Ends the array "items", writes "next_cursor", and ends the object. `after`: key of the last item written if more
// follow; nullopt: none do, and next_cursor is null.
void end_page(JsonWriter& out, std::string_view list, const std::optional<std::string>& after);

}  // namespace tocsin
