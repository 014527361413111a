// Checks the head (request line and header fields) of an HTTP request before its body is read: where it ends, and
// whether a proxy could see another end of the body than this server does (request smuggling). Used by HttpConnection.
// Thread: any.
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
  std::size_t size = 0;           // bytes of the whole head with its empty line; 0: not complete yet, or malformed
  const char* mistake = nullptr;  // why the head is refused (400), such as a bare line feed or too many lines
};

// Searches the end of the head in `received`, which begins with the head. `from`: how many of its bytes an earlier scan
// has searched. `max_lines`: request line and empty line included.
HeadScan scan_head(std::string_view received, std::size_t from, std::size_t max_lines);

bool has_bare_line_feed(std::string_view text);  // a line feed without a carriage return before it

// The answer to a head with a wrong Content-Length, Transfer-Encoding or Host (400), or with a Content-Encoding (415)
// or expectation (417) that is not supported; nullopt: the head is right.
std::optional<Problem> check_head(const BeastRequest& head);

// The head as the API reads it; `address` (of the client) is left empty. The host of an absolute target
// (http://host/path) replaces that of the Host field. nullopt: the target is neither a path nor such a URL (`*`,
// host:port, a fragment). REQUIRES: check_head() returned nullopt.
std::optional<HttpRequest> request_of(const BeastRequest& head);

}  // namespace tocsin
