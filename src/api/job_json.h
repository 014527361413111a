// The only translation between a Job and its JSON, and the limits of what a create may ask for. Used by the REST
// routes, by create_jobs_from_messages() (entry_messages.h), and by the webhook and broker handlers, which send
// job_text(). Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/json.h"
#include "api/json_writer.h"
#include "ports/biz_type.h"
#include "ports/client_store.h"

namespace tocsin {

inline constexpr std::size_t kMaxBizIdBytes = 128;
inline constexpr std::size_t kMaxKeyBytes = 256;  // of an idempotency_key
inline constexpr int kMaxAttempts = 1000;
inline constexpr WallTime kEarliestActionTime = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
// `is_rounded`: `action_time` was rounded up to a microsecond. Then kEarliestActionTime itself is too early, because
// the caller wrote an earlier time, such as 1999-12-31T23:59:59.9999999Z.
constexpr bool is_too_early(WallTime action_time, bool is_rounded) {
  return action_time < kEarliestActionTime || (is_rounded && action_time == kEarliestActionTime);
}
// The longest time from now to a deadline: 50 years with the most leap days.
inline constexpr Duration kMaxDelay = std::chrono::days(18'263);

// Writes the whole job as one JSON object. `catalog`: has the name of its type; if it does not, job.biz_type is
// written, or null if that is empty. `more`: further members, as JSON without braces.
void write_job(JsonWriter& out, const Job& job, const TypeCatalog& catalog, std::string_view more = {});
std::string job_text(const Job& job, const TypeCatalog& catalog);
// The member "errors" of an object that is being written.
void write_errors(JsonWriter& out, const Job& job);

// The job id in decimal digits. nullopt: not 1 to 40 digits. 0, which no job has, also for a number that is too large:
// it has the form of an id.
std::optional<JobId> job_id_from_text(std::string_view text);

// What a create asks for. The type is still a name: the caller looks it up and sets job.type_id, and job.max_attempts
// unless job.has_own_max_attempts.
struct JobRequest {
  std::string biz_type;
  NewJob job;
};
// Reads every field of `in`; mistakes go to in.problem(). REQUIRES: the JsonDocument was made with "attribute"
// as its `verbatim` field.
JobRequest read_job(JsonObject& in, WallTime now, std::size_t max_attribute_bytes);

// Reads action_time or delay_ms, of which exactly one must be there. Mistakes go to in.problem(). `now`: by the
// database (Backend::now()).
When read_when(JsonObject& in, WallTime now);

// The job as a create stored it, made of the request and the reply without another read. REQUIRES: reply.kind is
// created.
Job created_job(const NewJob& job, const CreateReply& reply);

// Whether this is the value of a W3C traceparent header (any version with the layout of 00, ids that are not all
// zeros).
bool is_traceparent(std::string_view text);

}  // namespace tocsin
