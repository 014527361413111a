// How one endpoint that this node delivers to, or takes messages from, is doing; for display.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

struct EndpointInfo {
  std::string kind;           // webhook, or that of a broker; entry: messages come from it
  std::string endpoint;       // scheme, host and port, or broker and topic; without secrets
  std::string state;          // ok; paused, trying (circuit breaker open, half-open); unavailable; idle: no attempt yet
  std::size_t in_flight = 0;  // attempts that have not been answered
  std::optional<std::size_t> limit;   // bound of in_flight
  std::optional<Duration> mean;       // of the time to the answer, of the latest attempts
  Duration pause_left{0};             // until it is tried again
  std::string last_error;             // "": none since the node started to use it
  std::optional<Duration> error_age;  // of last_error
};

}  // namespace tocsin
