// Problem: an error as a caller of the REST interface sees it (RFC 9457, application/problem+json). Handlers pass one
// to Call::refuse() (router.h). Thread: any.
#pragma once

#include <string>

#include "api/http.h"

namespace tocsin {

struct Problem {
  int status = 400;
  std::string detail;        // human-readable; one or two sentences
  std::string field = {};    // the input field at fault, like "jobs[3].biz_id"; or empty
  int retry_after_s = 0;     // the header Retry-After, in seconds; 0: no such header
  std::string members = {};  // further members, as JSON text without braces, like "\"job_id\":\"7\""; or empty
};

std::string problem_text(const Problem& problem);  // the JSON body; its title is the reason phrase of the status
HttpResponse problem_response(const Problem& problem);

}  // namespace tocsin
