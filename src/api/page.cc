#include "api/page.h"

#include <algorithm>
#include <iterator>

#include "api/query.h"
#include "api/url.h"

namespace tocsin {

std::string page_cursor(std::string_view list, std::string_view after) {
  return base64url(std::string(list) + ':' + std::string(after));
}

std::optional<Problem> read_page_request(const Call& call, std::string_view list, PageRequest& request) {
  if (const auto cursor = call.parameter("cursor")) {
    const auto text = base64url_decoded(*cursor);
    const std::string mark = std::string(list) + ':';
    if (!text || !text->starts_with(mark) || text->size() == mark.size())
      return Problem{400, "Must be a next_cursor of this list.", "cursor"};
    request.after = text->substr(mark.size());
  }
  return read_limit(call, request.limit);
}

std::vector<Parameter> page_parameters(const std::string& items) {
  return {{"limit", R"({"type":"integer","minimum":1,"maximum":1000,"default":100})", items + " per page"},
          {"cursor", R"({"type":"string"})", "next_cursor of the page before"}};
}

std::vector<Parameter> with_page_parameters(const std::string& items, std::vector<Parameter> others) {
  std::ranges::move(page_parameters(items), std::back_inserter(others));
  return others;
}

void end_page(JsonWriter& out, std::string_view list, const std::optional<std::string>& after) {
  out.end_array().key("next_cursor");
  after ? out.value(page_cursor(list, *after)) : out.null();
  out.end_object();
}

}  // namespace tocsin
