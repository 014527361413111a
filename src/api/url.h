// Parses request targets ("/v1/jobs?limit=5"): percent-encoding, path, query.
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
  std::string broken;  // the first parameter whose value has a broken encoding, bytes that are not UTF-8, or a NUL
};

// nullopt: the same in the path or in a parameter's name, or no '/' at the start.
std::optional<Target> target_from_text(std::string_view text);

// RFC 4648 base64url without padding, for opaque cursors.
std::string base64url(std::string_view bytes);
std::optional<std::string> base64url_decoded(std::string_view text);  // nullopt: a character of no such text

}  // namespace tocsin
