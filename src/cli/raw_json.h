// Copies JSON of the server with its numbers as they were written: parsing a number of many digits would lose digits.
// Used by read_pages() (cli/rest_client.h).
#pragma once

#include <string>

namespace tocsin {

// The items of a page (its member "items"), separated by commas, without brackets; empty if there is no item. Every
// number has the digits that it has in `page`. REQUIRES: `page` is JSON.
std::string raw_items(const std::string& page);

}  // namespace tocsin
