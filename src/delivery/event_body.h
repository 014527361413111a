// The body that every receiver of a job gets, by webhook or through a broker: {"type","timestamp","data"}. The
// timestamp is the job's action_time (RFC 3339).
#pragma once

#include <string>

#include "tocsin/job.h"

namespace tocsin {

// `type_json`: the name of the type as a JSON string; `job_json`: the job as a JSON object.
std::string event_body(const std::string& type_json, const Job& job, const std::string& job_json);

}  // namespace tocsin
