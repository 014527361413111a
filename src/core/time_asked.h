// The requested time in canonical form: part of the idempotency fingerprint, equal for creates with the same key.
#pragma once

#include <chrono>
#include <string>

#include "ports/job_desk.h"

namespace tocsin {

// The same text as in tocsin.create_job. DO NOT CHANGE: hashed and stored.
inline std::string time_asked(const When& when) {
  const auto& in = when.asked_in ? when.asked_in : when.in;
  if (!in) return "at " + std::to_string(when.at->time_since_epoch().count());
  return "in " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*in).count());
}

}  // namespace tocsin
