// requested_time(): the time that a create asked for, in canonical form. It is hashed into the idempotency fingerprint,
// so a repeated request must give the same text.
#pragma once

#include <chrono>
#include <string>

#include "ports/client_store.h"

namespace tocsin {

// "at <microseconds since 1970>" or, with `asked_in` or `in`, "in <milliseconds>", rounded towards zero. The SQL
// function tocsin.create_job makes the same text. DO NOT CHANGE: hashed and stored.
inline std::string requested_time(const When& when) {
  const auto& in = when.asked_in ? when.asked_in : when.in;
  if (!in) return "at " + std::to_string(when.at->time_since_epoch().count());
  return "in " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*in).count());
}

}  // namespace tocsin
