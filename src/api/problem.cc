#include "api/problem.h"

#include "api/json_writer.h"

namespace tocsin {

std::string problem_text(const Problem& problem) {
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  out.field("type", "about:blank").field("title", reason_phrase(problem.status)).field("status", problem.status);
  out.field("detail", problem.detail);
  if (!problem.field.empty()) out.field("field", problem.field);
  if (!problem.members.empty()) out.members(problem.members);
  out.end_object();
  return text;
}

HttpResponse problem_response(const Problem& problem) {
  HttpResponse response{problem.status, "application/problem+json", problem_text(problem), {}};
  if (problem.retry_after_s > 0) response.headers.emplace_back("Retry-After", std::to_string(problem.retry_after_s));
  if (problem.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace tocsin
