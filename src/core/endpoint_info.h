// EndpointInfo: the state of one endpoint that this node delivers to, or takes messages from, as GET /v1/endpoints
// shows it. The handler kinds (src/delivery, src/broker) and NodeStatus (src/node) make them anew for each request. A
// plain value.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

struct EndpointInfo {
  std::string kind;      // webhook, or the kind of a broker; entry: messages come from it, most other fields are empty
  std::string endpoint;  // scheme, host and port, or broker and topic; without secrets
  // ok; paused or trying: its circuit breaker is open or half-open; unavailable: a broker without a connection; idle:
  // nothing was tried yet.
  std::string state;
  std::size_t in_flight = 0;          // attempts that are not answered yet
  std::optional<std::size_t> limit;   // the largest in_flight that is allowed; nullopt: not known
  std::optional<Duration> mean;       // moving mean of the time from request to answer; nullopt: not known
  Duration pause_left{0};             // paused: time until the next attempt is sent to it; otherwise 0
  std::string last_error;             // "": none since the node began to use it; of an entry topic: none now
  std::optional<Duration> error_age;  // time since last_error
};

}  // namespace tocsin
