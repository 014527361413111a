#include "api/http_head.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>

namespace tocsin {
namespace {

namespace http = boost::beast::http;

std::string_view value_of(const BeastRequest& head, http::field name) {
  const auto it = head.find(name);
  return it == head.end() ? std::string_view() : std::string_view(it->value().data(), it->value().size());
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "max-age=5" of Cache-Control; 0 without it. More than a day is a day.
int max_age_of(std::string_view control) {
  constexpr std::string_view kName = "max-age=";
  constexpr int kMost = 86'400;
  int seconds = 0;
  const std::size_t at = control.find(kName);
  for (std::size_t i = at + kName.size(); at != control.npos && i < control.size(); ++i) {
    if (control[i] < '0' || control[i] > '9') break;
    seconds = std::min(seconds * 10 + (control[i] - '0'), kMost);
  }
  return seconds;
}

}  // namespace

HeadScan scan_head(std::string_view received, std::size_t from, std::size_t max_lines) {
  // A client that speaks TLS waits for an answer to its first record, which may hold no line end: answered at once.
  constexpr char kTlsHandshake = 0x16;
  if (received.starts_with(kTlsHandshake)) return {0, "This port speaks HTTP without TLS."};
  std::size_t end = 0;
  for (std::size_t i = received.find('\n', from); i != received.npos; i = received.find('\n', i + 1)) {
    if (i == 0 || received[i - 1] != '\r') return {0, "A line ends with a bare line feed."};
    if (i >= 3 && received[i - 2] == '\n') {
      end = i + 1;
      break;
    }
  }
  if (end == 0) return {};
  const std::string_view head = received.substr(0, end);
  std::size_t lines = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '\0') return {0, "The header holds a NUL."};
    if (head[i] == '\r' && head[i + 1] != '\n') return {0, "A carriage return stands alone."};
    if (head[i] == '\n') {
      ++lines;
      if (i + 1 < head.size() && (head[i + 1] == ' ' || head[i + 1] == '\t'))
        return {0, "Folded header lines are not accepted."};
    }
  }
  if (lines > max_lines) return {0, "The header has too many lines."};
  return {end, nullptr};
}

bool has_bare_line_feed(std::string_view text) {
  for (std::size_t i = text.find('\n'); i != text.npos; i = text.find('\n', i + 1)) {
    if (i == 0 || text[i - 1] != '\r') return true;
  }
  return false;
}

std::optional<Problem> check_head(const BeastRequest& head) {
  const auto lengths = head.count(http::field::content_length);
  const auto codings = head.count(http::field::transfer_encoding);
  const auto hosts = head.count(http::field::host);
  if (lengths > 1) return Problem{400, "Content-Length is given twice."};
  if (lengths == 1 && !is_number(value_of(head, http::field::content_length)))
    return Problem{400, "Content-Length is not a number."};
  if (lengths + codings > 1) return Problem{400, "Transfer-Encoding is combined with another length header."};
  if (codings == 1 && head.version() < 11) return Problem{400, "HTTP/1.0 has no Transfer-Encoding."};
  if (codings == 1 && !boost::beast::iequals(value_of(head, http::field::transfer_encoding), "chunked"))
    return Problem{400, "The only Transfer-Encoding understood is chunked."};
  if (hosts > 1 || (hosts == 0 && head.version() >= 11)) return Problem{400, "There must be exactly one Host."};
  if (const auto coding = value_of(head, http::field::content_encoding);
      !coding.empty() && !boost::beast::iequals(coding, "identity"))
    return Problem{415, "A body must come without Content-Encoding."};
  if (const auto expect = value_of(head, http::field::expect);
      !expect.empty() && !boost::beast::iequals(expect, "100-continue"))
    return Problem{417, "The only expectation understood is 100-continue."};
  return {};
}

std::optional<HttpRequest> request_of(const BeastRequest& head) {
  HttpRequest request;
  std::string_view target(head.target().data(), head.target().size());
  std::string_view host = value_of(head, http::field::host);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!boost::beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t slash = std::min(target.find_first_of("/?"), target.size());
    host = target.substr(0, slash);  // RFC 9112: an absolute target overrides Host
    target.remove_prefix(slash);
    if (target.empty()) target = "/";
    break;
  }
  if (!target.starts_with('/') || target.find('#') != target.npos) return {};
  request.method = head.method_string();
  request.target = target;
  request.host = host;
  request.origin = value_of(head, http::field::origin);
  request.authorization = value_of(head, http::field::authorization);
  request.content_type = value_of(head, http::field::content_type);
  request.max_age_s = max_age_of(value_of(head, http::field::cache_control));
  request.accept_encoding = value_of(head, http::field::accept_encoding);
  request.if_match = value_of(head, http::field::if_match);
  request.if_none_match = value_of(head, http::field::if_none_match);
  if (const auto it = head.find("traceparent"); it != head.end()) request.traceparent = it->value();
  return request;
}

}  // namespace tocsin
