// A job as callers see it (Job), as the engine holds it (ClaimedJob), and the result of an attempt (Outcome).
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
  WallTime action_time{};  // the deadline that the caller asked for; retries do not change it
  WallTime fire_at{};      // when the row is due next: deadline, retry time or end of the lease
  int attempts = 0;        // started so far
  int max_attempts = 16;
  std::string attribute_json;  // the caller's data as JSON text; empty when none was given
  std::optional<std::string> idempotency_key;
  std::optional<std::string> node;  // name of the node that claimed it last
  std::optional<std::string> traceparent;
  WallTime gmt_create{};
  WallTime gmt_modified{};
  // Start of the first attempt since the deadline was set by the create, or by a reschedule, replace or retry.
  std::optional<WallTime> started_at;
  std::optional<WallTime> late_from;    // lateness counts from here; else from action_time, not before gmt_create
  std::optional<WallTime> finished_at;  // done, cancelled or dead
  std::vector<JobError> errors;         // the last 16 failures

  Shard shard() const { return shard_of(job_id); }
  // The later of the deadline and the moment at which it was set.
  WallTime due_at() const { return late_from.value_or(std::max(action_time, gmt_create)); }
  // From due_at() to started_at, never negative; nullopt: not started.
  std::optional<Duration> lateness() const {
    return started_at ? std::optional(std::max(*started_at - due_at(), Duration(0))) : std::nullopt;
  }
  // Whether the claim that returned this row was that of the first attempt: it wrote both times, and PostgreSQL read
  // the clock for started_at last.
  bool is_first_start() const { return started_at && *started_at >= gmt_modified; }
};

// A job that this node has claimed and must finish or release before its lease ends.
struct ClaimedJob {
  Job job;                    // job.attempts counts this attempt; job.fire_at is the end of the lease
  ClaimToken token = 0;       // of this attempt: a finish with another token changes nothing
  MonoTime lease_deadline{};  // end of the lease by the local clock, counted from before the claim was sent
  // The handler must not start later: an asynchronous standby that takes over may lack the claim, and a cancel may have
  // been acknowledged in its place. max(): only the lease bounds the start.
  MonoTime start_by = MonoTime::max();
  // fire_at before the claim, restored if the attempt does not start. Empty: not known.
  std::optional<WallTime> fire_at_before = {};
  bool is_catch_up = false;  // claimed at the catch-up pace
};

// The result of one attempt.
struct Outcome {
  enum class Kind {
    done,
    retry,
    dead,
    not_started,  // the handler had no capacity: due again, the attempt not counted
    handed_over,  // a receiver or consumer acknowledges it with its lease token; otherwise the lease ends
  };
  Kind kind = Kind::done;
  std::optional<Duration> retry_after;  // retry, not_started: the delay until the next start; else the type's back-off
  std::string message;                  // retry, dead: why; kept in the job's errors
  bool is_written = false;  // the handler wrote it itself, in a transaction of its own under the claim's token
  bool is_least = false;    // retry_after is a lower bound: the backoff of the type counts when it is longer

  static Outcome done() { return {}; }
  static Outcome retry(std::string why, std::optional<Duration> after = {}) {
    return {Kind::retry, after, std::move(why), false, false};
  }
  // After `after`, but never sooner than the type's back-off.
  static Outcome retry_no_sooner(std::string why, std::optional<Duration> after) {
    return {Kind::retry, after, std::move(why), false, true};
  }
  static Outcome not_started(Duration after) { return {Kind::not_started, after, {}, false, false}; }
  static Outcome handed_over() { return {Kind::handed_over, {}, {}, false, false}; }
  static Outcome dead(std::string why) { return {Kind::dead, {}, std::move(why), false, false}; }
};

}  // namespace tocsin
