// Parses request targets ("/v1/jobs?limit=5") into path and query, for the router (router.h); converts cursors to
// base64url and back, for lists. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin {

struct Target {
  std::vector<std::string> path;                           // segments, decoded; "/" has none
  std::vector<std::pair<std::string, std::string>> query;  // in order, decoded; '+' is a space
  // Name of the first query parameter whose value is malformed: a wrong percent-encoding, not UTF-8, or a NUL; nullopt:
  // none. Malformed parameters are not in `query`.
  std::optional<std::string> malformed;
};

// nullopt: the text does not begin with '/', or the path or the name of a parameter is malformed.
std::optional<Target> target_from_text(std::string_view text);

// RFC 4648 base64url without padding, for opaque cursors.
std::string base64url(std::string_view bytes);
std::optional<std::string> base64url_decoded(std::string_view text);  // nullopt: a character outside the alphabet

}  // namespace tocsin
