#include "api/dashboard.h"

#include <algorithm>

namespace tocsin {
namespace {

// Scripts and styles come from this node alone, and nothing inline runs: a text that a caller has sent stays a text.
constexpr std::string_view kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Whether `list` ("gzip, br;q=0.8", "W/\"a\", \"b\"") holds `wanted` as one of its items; "q=0" refuses what it names.
bool has_item(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::string_view parameters = item.substr(std::min(item.find(';'), item.size()));
    item = item.substr(0, item.size() - parameters.size());
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.starts_with("W/")) item.remove_prefix(2);
    if (item != wanted) continue;
    const std::size_t weight = parameters.find("q=0");
    return weight == parameters.npos || parameters.find_first_of("123456789", weight) != parameters.npos;
  }
  return false;
}

HttpResponse response_of(const DashboardFile& file, const HttpRequest& request) {
  HttpResponse response;
  response.content_type = file.content_type;
  response.cache_control = file.path == "/" ? "no-cache" : "public, max-age=31536000, immutable";
  response.headers = {{"ETag", std::string(file.etag)},
                      {"Vary", "Accept-Encoding"},
                      {"Content-Security-Policy", std::string(kContentPolicy)},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"}};
  if (has_item(request.if_none_match, file.etag)) {
    response.status = 304;
  } else if (has_item(request.accept_encoding, "gzip")) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = file.gzip;
  } else {
    response.body = file.plain;
  }
  return response;
}

}  // namespace

Admission Dashboard::admit(const HttpRequest& head) {
  const std::string_view path = std::string_view(head.target).substr(0, head.target.find('?'));
  const auto& files = dashboard_files();
  const auto file = std::ranges::find(files, path, &DashboardFile::path);
  if (file == files.end() || (head.method != "GET" && head.method != "HEAD")) return next_.admit(head);
  Admission admission;
  admission.run = [&each = *file](const HttpRequest& request, const Responder& respond) {
    respond(response_of(each, request));
  };
  return admission;
}

}  // namespace tocsin
