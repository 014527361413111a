// Targets of requests taken apart: percent-encoding, path, query.
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
};

// nullopt: a broken percent-encoding, bytes that are not UTF-8, a NUL, or no '/' at the start.
std::optional<Target> target_from_text(std::string_view text);

// RFC 4648 base64url without padding, for opaque cursors.
std::string base64url(std::string_view bytes);
std::optional<std::string> base64url_decoded(std::string_view text);

}  // namespace tocsin
