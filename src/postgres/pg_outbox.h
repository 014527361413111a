// Jobs that SQL callers created in a database where their shards do not live: the side that they leave
// and the side that they come to.
//
// An entry is claimed, in a transaction of its own, before it is relayed: a claimed entry cannot be cancelled in its
// outbox any more. Taking it over inserts the job and records that in one transaction, so any node may repeat it; then
// the entry is deleted. No node relays an entry that it read longer ago than kHandOver, and the record is kept for
// longer than that.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postgres/session.h"
#include "tocsin/job.h"
#include "tocsin/member_store.h"

namespace tocsin {

struct OutboxEntry {
  JobId job_id = 0;
  TypeId type_id = 0;
  int max_attempts = 0;
  bool is_cancelled = false;  // it is to be a cancelled job
  WallTime action_time{}, gmt_create{};
  std::string biz_id;
  std::optional<std::string> idempotency_key;
  std::optional<std::int64_t> body_hash;
  std::optional<std::string> attribute_json;
};

// What became of an entry: a job, unless `error` or `existing` say otherwise.
struct TakenOver {
  JobId job_id = 0;
  TypeId type_id = 0;
  std::optional<WallTime> fire_at;  // of a job that was made just now and is pending
  std::optional<JobId> existing;    // the job that had the idempotency key
  std::string error;                // refused, and why
};

struct OutboxSize {
  std::int64_t waiting = 0;  // entries that are not handed over yet
  std::int64_t refused = 0;
  Duration oldest{0};  // how long the oldest of them has waited
};

// The database that the entries leave.
// Thread: owner only.
class PgOutbox {
 public:
  explicit PgOutbox(Session& session) : session_(session) {}

  Result<bool> is_empty();
  // Up to `limit` entries for `relay` to hand over: of the shards that are `mine`, and of `others` entries that
  // are older than 10 s, whatever their owner; those due soonest first, those that were tried before last. Entries that
  // another relay has claimed within 10 s are left to it; what `relay` itself has claimed comes again after a second.
  // Locked entries are left out.
  Result<std::vector<OutboxEntry>> claim(std::span<const Shard> mine, std::span<const Shard> others, std::int64_t relay,
                                         int limit);
  // Deletes what became a job; keeps the rest, with the reason. Repeating it changes nothing.
  Status settle(std::span<const TakenOver> entries);
  // Which of these are in the outbox no more.
  Result<std::vector<JobId>> gone(std::span<const JobId> jobs);
  // Entries whose key had a job already are kept for a week.
  Status forget_existing();
  Result<OutboxSize> size();

 private:
  Session& session_;
};

// A database that they come to.
// Thread: owner only.
class PgIntake {
 public:
  static constexpr Duration kHandOver = std::chrono::seconds(60);

  explicit PgIntake(Session& session) : session_(session) {}

  // In one transaction: a reply per entry, in order. `valid_until`: by this database's clock, at most kHandOver after
  // the entries were read. Error conflict: another transaction holds a key, a shard does not live here (moved), a type
  // is not mirrored here yet, or it is too late. May be repeated after every Error.
  Result<std::vector<TakenOver>> take_over(Place source, WallTime valid_until, std::span<const OutboxEntry> entries);

  // Jobs recorded as relayed from `source` for these shards: up to `limit` whose entries were not checked yet.
  // Forgets what has been gone for more than ten minutes.
  Result<std::vector<JobId>> remembered(Place source, std::span<const Shard> shards, int limit);
  // Their entries are gone.
  Status note_gone(std::span<const JobId> jobs);

 private:
  Session& session_;
};

}  // namespace tocsin
