// A job as the outside sees it, and what a handler says of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tocsin/clock.h"
#include "tocsin/job_status.h"
#include "tocsin/shard.h"

namespace tocsin {

using TypeId = std::int32_t;
using ClaimToken = std::int64_t;

inline constexpr std::size_t kLongestJobError = 1000;  // bytes of a message that are kept

// One failed attempt.
struct JobError {
  std::string at;  // RFC 3339, database clock
  std::string node;
  int attempt = 0;
  std::string message;
};

struct Job {
  JobId job_id = 0;
  std::string biz_id;    // 1..128 bytes, UTF-8
  std::string biz_type;  // name of the type
  TypeId type_id = 0;
  JobStatus status = JobStatus::pending;
  WallTime action_time{};  // the deadline the business asked for; never touched by retries
  WallTime fire_at{};      // when the row next wants attention: deadline, retry time or lease end
  int attempts = 0;        // started so far
  int max_attempts = 16;
  std::string attribute_json;  // the caller's data as JSON text; empty when none was given
  std::optional<std::string> idempotency_key;
  std::optional<std::string> node;  // that claimed it last
  std::optional<std::string> traceparent;
  WallTime gmt_create{};
  WallTime gmt_modified{};
  // Of the first attempt since the deadline was set: by the create, or a reschedule, replace or retry after it.
  std::optional<WallTime> started_at;
  std::optional<WallTime> late_from;    // lateness counts from here; else from action_time, not before gmt_create
  std::optional<WallTime> finished_at;  // done, cancelled or dead
  std::vector<JobError> errors;         // the last 16 failures

  Shard shard() const { return shard_of(job_id); }
  // The later of the deadline and the moment at which it was set.
  WallTime due_at() const { return late_from.value_or(std::max(action_time, gmt_create)); }
  // Of that start, never negative.
  std::optional<Duration> lateness() const {
    return started_at ? std::optional(std::max(*started_at - due_at(), Duration(0))) : std::nullopt;
  }
  // The claim that gave this row, and wrote both times, was that of this first attempt (the order of the columns is the
  // order in which PostgreSQL reads the clock for them).
  bool is_first_start() const { return started_at && *started_at >= gmt_modified; }
};

// A job that this node has claimed: a promise to run it, valid until the lease ends.
struct ClaimedJob {
  Job job;                    // job.attempts counts this attempt; job.fire_at is the end of the lease
  ClaimToken token = 0;       // fences this attempt: a finish with another token changes nothing
  MonoTime lease_deadline{};  // local trust in the lease, counted from before the claim was sent
  // Not to be started later than this: a standby that takes over may lack the claim, and a cancel may then win.
  MonoTime start_by = MonoTime::max();
  // When the row was due before the claim: its time again if the attempt does not start. Empty: not known.
  std::optional<WallTime> fire_at_before = {};
  bool is_catch_up = false;  // claimed at the catch-up pace
};

// What became of one attempt.
struct Outcome {
  enum class Kind {
    done,
    retry,
    dead,
    not_started,  // the handler had no room for it: due again, the attempt not counted
    handed_over,  // somebody outside acknowledges it with its lease token; if not, the lease ends and it is due again
  };
  Kind kind = Kind::done;
  std::optional<Duration> retry_after;  // retry: the handler's own wish; otherwise the backoff of the type decides
  std::string message;                  // retry, dead: why; kept in the job's errors
  bool is_written = false;  // the handler wrote it itself, in a transaction of its own under the claim's token
  bool is_least = false;    // retry_after is a lower bound: the backoff of the type counts when it is longer

  static Outcome done() { return {}; }
  static Outcome retry(std::string why, std::optional<Duration> after = {}) {
    return {Kind::retry, after, std::move(why), false, false};
  }
  // What the receiver asks for; never sooner than the type's own backoff.
  static Outcome retry_no_sooner(std::string why, std::optional<Duration> after) {
    return {Kind::retry, after, std::move(why), false, true};
  }
  static Outcome not_started(Duration after) { return {Kind::not_started, after, {}, false, false}; }
  static Outcome handed_over() { return {Kind::handed_over, {}, {}, false, false}; }
  static Outcome dead(std::string why) { return {Kind::dead, {}, std::move(why), false, false}; }
};

}  // namespace tocsin
