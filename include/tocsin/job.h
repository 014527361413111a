// The values that describe jobs: Job (one row, as callers see it), ClaimedJob (a job that this node has leased and
// runs) and Outcome (what a handler says about an attempt). Plain values without locks: one thread at a time.
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
using ClaimToken = std::int64_t;  // identifies one claim of a job, and so one attempt

inline constexpr std::size_t kLongestJobError = 1000;  // bytes of JobError::message; longer messages are cut

// One failed attempt.
struct JobError {
  std::string at;  // when it failed: RFC 3339, UTC, by the database's clock
  std::string node;
  int attempt = 0;  // its number, from 1
  std::string message;
  std::string started_at = {};  // when the attempt started; empty: the entry is not about a failed attempt
};

// One row of the live or the history tables. Every WallTime is of the database's clock.
struct Job {
  JobId job_id = 0;
  std::string biz_id;    // 1..128 bytes, UTF-8
  std::string biz_type;  // name of its type
  TypeId type_id = 0;
  JobStatus status = JobStatus::pending;
  WallTime action_time{};      // the deadline that the caller asked for; failed attempts do not change it
  WallTime fire_at{};          // pending: when the next attempt is due; running: end of the lease
  int attempts = 0;            // since the create or the last revive, the running one included
  int max_attempts = 16;       // 1..1000: the job is dead when this many attempts have failed
  std::string attribute_json;  // the caller's data as JSON text; empty when none was given
  std::optional<std::string> idempotency_key;
  std::optional<std::string> node;         // name of the node that claimed it last
  std::optional<std::string> traceparent;  // W3C trace context of the request that created it
  WallTime gmt_create{};
  // Last change of the row, but for extensions of its lease: of a running job, the claim.
  WallTime gmt_modified{};
  // Start of the first attempt since the deadline was last set: by the create, a reschedule, a replace or a revive.
  std::optional<WallTime> started_at;
  // Start of the attempt that runs, or with which the job was done. Empty: pending, cancelled or dead.
  std::optional<WallTime> last_started_at;
  // Where lateness is counted from if not from the deadline: set by a revive, and by a change of the deadline to a time
  // that had passed.
  std::optional<WallTime> late_from;
  std::optional<WallTime> finished_at;  // when it became done, cancelled or dead; empty while it is live
  std::vector<JobError> errors;         // the last 16 failures, oldest first

  Shard shard() const { return shard_of(job_id); }
  // The moment from which lateness counts: the deadline, but not before the moment at which it was set.
  WallTime due_at() const { return late_from.value_or(std::max(action_time, gmt_create)); }
  // The time from due_at() to started_at, not negative; nullopt: no attempt has started.
  std::optional<Duration> lateness() const {
    return started_at ? std::optional(std::max(*started_at - due_at(), Duration(0))) : std::nullopt;
  }
  // For a row that a claim returned: whether its attempt is the one that set started_at. Every claim sets gmt_modified;
  // only the first sets started_at, and reads the clock for it after that for gmt_modified.
  bool is_first_start() const { return started_at && *started_at >= gmt_modified; }
};

// A job that this node has claimed: made by a claimer, passed to the handler, and kept until the finisher has written
// its outcome. It must be finished or released before its lease ends, or it is due again.
struct ClaimedJob {
  Job job;               // job.attempts counts this attempt; job.fire_at is the end of the lease
  ClaimToken token = 0;  // of this attempt: a finish with another token changes nothing
  // The attempt must end by then. It lies before the end of the lease: the lease is counted from before the claim was
  // sent, less a margin (EngineConfig::lease_margin, at most a quarter of the lease).
  MonoTime lease_deadline{};
  // The handler must not start later: half of what the runner found left of the lease is for the attempt. Unless the
  // claim before was slow, it is also the end of the start window: if the database fails over, a standby may lack this
  // claim and may have acknowledged a cancel of the job. The runner lowers it; jobs of pull types pass no runner.
  MonoTime start_by = MonoTime::max();
  // fire_at before the claim. A job whose attempt does not start is due at this time again, and so keeps its turn; it
  // is due at once if the time is not known (empty) or another node scans its shard now.
  std::optional<WallTime> fire_at_before = {};
  bool is_catch_up = false;  // the job was found late, and its start counts for the type's catch-up rate
};

// How an attempt ended. The handler passes it to the engine, and the finisher writes it to the database.
struct Outcome {
  enum class Kind {
    done,
    retry,        // failed: pending again, or dead if it was the last attempt
    dead,         // failed, and further attempts are pointless
    not_started,  // the handler could not begin it: pending again, the attempt not counted
    handed_over,  // a webhook's receiver works on it now; due again at the end of the lease unless it reports before
  };
  Kind kind = Kind::done;
  // The delay from the write of the outcome until the job is due, at most a year. retry: empty means the type's
  // back-off. not_started: empty or zero means that the job keeps its time (ClaimedJob::fire_at_before).
  std::optional<Duration> retry_after;
  std::string message;          // retry, dead: why; kept in the job's errors
  bool is_written = false;      // the handler has written it in its own transaction, so the finisher does not
  bool is_lower_bound = false;  // of retry: the longer of retry_after and the type's back-off counts

  static Outcome done() { return {}; }
  static Outcome retry(std::string why, std::optional<Duration> after = {}) {
    return {Kind::retry, after, std::move(why), false, false};
  }
  // A retry after `after` or the type's back-off, the longer of the two.
  static Outcome retry_no_sooner(std::string why, std::optional<Duration> after) {
    return {Kind::retry, after, std::move(why), false, true};
  }
  static Outcome not_started(Duration after) { return {Kind::not_started, after, {}, false, false}; }
  static Outcome handed_over() { return {Kind::handed_over, {}, {}, false, false}; }
  static Outcome dead(std::string why) { return {Kind::dead, {}, std::move(why), false, false}; }
};

}  // namespace tocsin
