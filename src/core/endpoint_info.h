// EndpointInfo: the state of one endpoint that this node delivers to, or takes messages from; for display.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

struct EndpointInfo {
  std::string kind;      // webhook, or the kind of a broker; entry: messages come from it
  std::string endpoint;  // scheme, host and port, or broker and topic; without secrets
  // ok; paused or trying: its circuit breaker is open or half-open; unavailable: a broker without a connection; idle:
  // nothing was tried yet.
  std::string state;
  std::size_t in_flight = 0;          // attempts that were not answered yet
  std::optional<std::size_t> limit;   // the most that in_flight can be
  std::optional<Duration> mean;       // mean time to the answer, of the latest attempts
  Duration pause_left{0};             // until it is tried again
  std::string last_error;             // "": none since the node started to use it
  std::optional<Duration> error_age;  // time since last_error
};

}  // namespace tocsin
