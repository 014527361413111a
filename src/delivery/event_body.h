// The body that every receiver of a job gets, by webhook or from a broker: {"type","timestamp","data"}. The timestamp
// is the job's action_time (RFC 3339, UTC). Called for each attempt by the handlers of WebhookKind and BrokerKind.
// Thread: any.
#pragma once

#include <string>

#include "tocsin/job.h"

namespace tocsin {

// `type_json`: the name of the type as a JSON string, with quotes. `job_json`: `job` as a JSON object; it becomes
// "data". Neither is checked.
std::string event_body(const std::string& type_json, const Job& job, const std::string& job_json);

}  // namespace tocsin
