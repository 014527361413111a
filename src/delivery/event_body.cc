#include "delivery/event_body.h"

#include "core/rfc3339.h"

namespace tocsin {

std::string event_body(const std::string& type_json, const Job& job, const std::string& job_json) {
  return R"({"type":)" + type_json + R"(,"timestamp":")" + rfc3339(job.action_time) + R"(","data":)" + job_json + "}";
}

}  // namespace tocsin
