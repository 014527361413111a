// One attempt of a job as a message for a broker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tocsin/job.h"

namespace tocsin {

struct BrokerMessage {
  std::string id;                 // the job_id: the same for every attempt, so that receivers can drop repeats
  std::string key;                // biz_id
  std::string type;               // name of the type
  std::string attempt;            // its number as text, from 1
  std::int64_t timestamp_ms = 0;  // action_time, since 1970 UTC
  std::optional<std::string> traceparent;
  std::string body;  // JSON: delivery/event_body.h
};

}  // namespace tocsin
