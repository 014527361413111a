// time_asked(): the requested time of a create in canonical form, part of its idempotency fingerprint. A repeated
// request gives the same text.
#pragma once

#include <chrono>
#include <string>

#include "ports/job_desk.h"

namespace tocsin {

// "at <microseconds since 1970>" or "in <milliseconds>". The same text as in tocsin.create_job. DO NOT CHANGE: hashed
// and stored.
inline std::string time_asked(const When& when) {
  const auto& in = when.asked_in ? when.asked_in : when.in;
  if (!in) return "at " + std::to_string(when.at->time_since_epoch().count());
  return "in " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*in).count());
}

}  // namespace tocsin
