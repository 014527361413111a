// Where the head of a request ends, and whether what it says about its body can be trusted.
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
  std::size_t size = 0;           // of the whole head with its empty line; 0: not complete yet
  const char* mistake = nullptr;  // a line ending or fold that readers disagree about
};

// Continues at `from`, where an earlier scan of the same bytes ended.
HeadScan scan_head(std::string_view received, std::size_t from, std::size_t max_lines);

bool has_bare_line_feed(std::string_view text);

// What is wrong with the framing, the host or the codings; nullopt: nothing.
std::optional<Problem> check_head(const BeastRequest& head);

// REQUIRES: check_head found nothing. nullopt: the target is not one for this server.
std::optional<HttpRequest> request_of(const BeastRequest& head);

}  // namespace tocsin
