// BrokerMessage: one attempt of a job as a message. The type's handler makes it (BrokerKind), and a Link sends it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tocsin/job.h"

namespace tocsin {

struct BrokerMessage {
  std::string id;                          // the job_id: the same for every attempt, so that receivers can drop repeats
  std::string key;                         // biz_id, the record key in Kafka; AMQP messages lack it
  std::string type;                        // name of the type
  std::string attempt;                     // its number as text, from 1
  std::int64_t timestamp_ms = 0;           // action_time, in milliseconds since 1970 UTC
  std::optional<std::string> traceparent;  // W3C trace context of the job
  std::string body;                        // JSON {"type","timestamp","data"}: delivery/event_body.h
};

}  // namespace tocsin
