// The outbox (ADR 0022): jobs that SQL callers created in a database where their shards do not live. OutboxStore is the
// side that entries leave, IntakeStore the side where they become jobs; multidb/outbox_relay uses both. OutboxLookup is
// for requests about a job or key (multidb/outbox_waiter). Implemented by src/postgres/pg_outbox and, but for the
// lookup, by FakeOutbox (tests/support).
//
// A relay (one per node process) claims an entry before it relays it: a claimed entry can no longer be cancelled in its
// outbox. take_over() inserts the job and a record of that in one transaction, so any node may repeat it; then the
// entry is deleted. No node relays an entry that it read longer ago than kHandOver, and the record is kept for longer
// than that.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ports/member_store.h"
#include "tocsin/job.h"

namespace tocsin {

// A job to be created, as the SQL caller asked for it.
struct OutboxEntry {
  JobId job_id = 0;
  TypeId type_id = 0;
  int max_attempts = 0;
  bool is_cancelled = false;  // was cancelled before it was claimed: it becomes a cancelled job
  WallTime action_time{}, gmt_create{};
  std::optional<WallTime> late_from;  // Job::late_from: the entry got a deadline in the past
  std::string biz_id;
  std::optional<std::string> idempotency_key;
  std::optional<std::int64_t> body_hash;  // idempotency fingerprint; only with a key
  std::optional<std::string> attribute_json;
};

// What became of an entry: a new job, unless `existing` or `error` is set.
struct TakenOver {
  JobId job_id = 0;
  TypeId type_id = 0;
  std::optional<WallTime> fire_at;  // of the new job, if it is pending
  std::optional<JobId> existing;    // the job that had its idempotency key
  std::string error;                // why the entry was refused; empty: it was not
};

struct OutboxSize {
  std::int64_t waiting = 0;  // entries that are not relayed yet
  std::int64_t refused = 0;  // entries that became no job, kept with the reason
  Duration oldest{0};        // how long the oldest waiting entry has waited
};

// The outbox of the database that the entries leave.
// Thread: owner only.
class OutboxStore {
 public:
  virtual ~OutboxStore() = default;

  virtual Result<bool> is_empty() = 0;  // no entry waits
  // Claims up to `limit` entries for `relay` (the caller's number) and returns them in any order: of the shards `mine`,
  // and of the shards `others` those older than 10 s. The soonest due are chosen first, but entries that were claimed
  // before last. Leaves out entries that another relay has claimed within 10 s, or `relay` itself within a second, and
  // locked ones.
  virtual Result<std::vector<OutboxEntry>> claim(std::span<const Shard> mine, std::span<const Shard> others,
                                                 std::int64_t relay, int limit) = 0;
  // Deletes the entries that became jobs; the others no longer wait, and stay with the reason. Safe to repeat.
  virtual Status settle(std::span<const TakenOver> entries) = 0;
  // Which of these jobs have no entry in the outbox any more.
  virtual Result<std::vector<JobId>> gone(std::span<const JobId> jobs) = 0;
  // Deletes entries whose idempotency key had a job already, a week after settle() recorded that.
  virtual Status forget_existing() = 0;
  virtual Result<OutboxSize> size() = 0;
};

// What a request is about: one job, or all jobs of a key.
struct EntryQuery {
  JobId job_id = 0;    // 0: those of the key
  std::string biz_id;  // empty: by id
};

// Thread: owner only.
class OutboxLookup {
 public:
  virtual ~OutboxLookup() = default;

  // Whether an entry waits in this outbox, for each query, in order. Sees what was committed before the call.
  virtual Result<std::vector<bool>> are_waiting(std::span<const EntryQuery> queries) = 0;
  // Notifies the relays of all nodes that entries wait.
  virtual Status announce() = 0;
};

// The database where entries become jobs.
// Thread: owner only.
class IntakeStore {
 public:
  // For this long after it was read an entry may be taken over.
  static constexpr Duration kHandOver = std::chrono::seconds(60);
  virtual ~IntakeStore() = default;

  // Creates the jobs in one transaction; a reply per entry, in order. `source`: the database of the outbox.
  // `valid_until`: by this database's clock, at most kHandOver after the entries were read. Error conflict: another
  // transaction holds a key, a type is not mirrored here yet, or valid_until has passed; moved: a shard lives
  // elsewhere. May be repeated after every Error.
  virtual Result<std::vector<TakenOver>> take_over(DatabaseId source, WallTime valid_until,
                                                   std::span<const OutboxEntry> entries) = 0;

  // Up to `limit` jobs of these shards that were relayed from `source` a minute ago or earlier (a week, if the key had
  // a job already) and whose entries may still exist. Also deletes records whose entries were gone ten minutes ago.
  virtual Result<std::vector<JobId>> remembered(DatabaseId source, std::span<const Shard> shards, int limit) = 0;
  // Records that the entries of these jobs are gone.
  virtual Status note_gone(std::span<const JobId> jobs) = 0;
};

}  // namespace tocsin
