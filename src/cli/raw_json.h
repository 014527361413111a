// Copies JSON of the server with its numbers as they were written: a parsed number of many digits would lose digits.
#pragma once

#include <string>

namespace tocsin {

// The items of a page (its member "items"), separated by commas, with every number as it stands in `page`. Without
// brackets; empty if there is no item. REQUIRES: `page` is JSON.
std::string raw_items(const std::string& page);

}  // namespace tocsin
