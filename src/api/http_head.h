// Checks the head (request line and header fields) of an HTTP request before its body is read: where it ends, and
// whether another server could read its framing differently (request smuggling).
// Used by HttpConnection.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <optional>
#include <string_view>

#include "api/http.h"
#include "api/problem.h"

namespace tocsin {

using BeastRequest = boost::beast::http::request<boost::beast::http::string_body>;

struct HeadScan {
  std::size_t size = 0;           // bytes of the whole head with its empty line; 0: not complete yet
  const char* mistake = nullptr;  // why the head is refused: a bare line feed, a folded line, too many lines
};

// Searches the end of the head in `received`. `from`: the bytes that an earlier scan of the same head has searched.
HeadScan scan_head(std::string_view received, std::size_t from, std::size_t max_lines);

bool has_bare_line_feed(std::string_view text);

// The answer to a head with wrong framing, host or transfer coding; nullopt: the head is right.
std::optional<Problem> check_head(const BeastRequest& head);

// The head as the router reads it. nullopt: the target is no path (such as `*` or another host's URL).
// REQUIRES: check_head() returned nullopt.
std::optional<HttpRequest> request_of(const BeastRequest& head);

}  // namespace tocsin
