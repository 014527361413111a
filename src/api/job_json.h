// The only translation between a Job and its JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/json.h"
#include "api/json_writer.h"
#include "ports/biz_type.h"
#include "ports/job_desk.h"

namespace tocsin {

inline constexpr std::size_t kMaxBizIdBytes = 128;
inline constexpr std::size_t kMaxKeyBytes = 256;
inline constexpr int kMaxAttempts = 1000;
inline constexpr WallTime kEarliestActionTime = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
// `is_rounded`: the time was rounded up, so one that equals the earliest time was before it as written.
constexpr bool is_too_early(WallTime action_time, bool is_rounded) {
  return action_time < kEarliestActionTime || (is_rounded && action_time == kEarliestActionTime);
}
inline constexpr Duration kHorizon = std::chrono::days(18'262);  // 50 years

// The whole job as one JSON object. `catalog` names its type; `more`: further members, as JSON text without braces.
void write_job(JsonWriter& out, const Job& job, const TypeCatalog& catalog, std::string_view more = {});
std::string job_text(const Job& job, const TypeCatalog& catalog);

// The job id in decimal digits. nullopt: not a number. 0, which no job has: a number that is too large.
std::optional<JobId> job_id_from_text(std::string_view text);

// What a create asks for; the type is still a name.
struct JobRequest {
  std::string biz_type;
  NewJob job;
};
JobRequest read_job(JsonObject& in, WallTime now, std::size_t max_attribute_bytes);

// Exactly one of action_time and delay_ms.
When read_when(JsonObject& in, WallTime now);

// The job that a create made, without reading it back.
Job created_job(const NewJob& job, const CreateReply& reply);

// A W3C trace context header (version 00 layout, ids not all zero).
bool is_traceparent(std::string_view text);

}  // namespace tocsin
