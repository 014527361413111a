// The outbox (ADR 0022): where jobs wait that SQL callers created in a database in which their shards do not live. A
// waiting job is an entry. To relay an entry is to bring it to the database of its shard, where it becomes a job.
//  - OutboxStore: the database that entries leave. IntakeStore: the database in which they become jobs. The relay of
//    each node (multidb/outbox_relay.h) uses both.
//  - OutboxLookup: for requests about a job or key whose entry may still wait, or whose shard may have moved
//    (multidb/outbox_waiter.h).
// Implemented by src/postgres/pg_outbox and, except OutboxLookup, by FakeOutbox (tests/support).
//
// A relay claims an entry before it relays it. In its outbox an entry can be cancelled or rescheduled only before that,
// and only if it has no idempotency key: another job may have the key. take_over() inserts the job and a record of the
// entry in one transaction, so any node may repeat it. Then the entry is deleted. No node relays an entry that it read
// longer ago than kHandOver, and the record is kept for longer than that, so no entry becomes two jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
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
  bool is_cancelled = false;  // cancelled before a relay claimed it: it becomes a cancelled job
  WallTime action_time{}, gmt_create{};
  std::optional<WallTime> late_from;   // Job::late_from: the entry got a deadline in the past
  std::optional<WallTime> changed_at;  // when it was last cancelled or rescheduled in its outbox
  std::string biz_id;
  std::optional<std::string> idempotency_key;
  std::optional<std::int64_t> body_hash;  // idempotency fingerprint; only with a key
  std::optional<std::string> attribute_json;
};

// What became of an entry: its job, unless `existing` or `error` is set.
struct TakenOver {
  JobId job_id = 0;
  TypeId type_id = 0;
  std::optional<WallTime> fire_at;  // of the new job, if it is pending
  std::optional<JobId> existing;    // the job that had the entry's idempotency key, or job_id: it was changed too late
  std::string error;                // why the entry was refused, or was changed too late; empty: it was not
  std::optional<WallTime> changed_at;  // of the entry as it was relayed
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
  // Claims up to `limit` entries for `relay` (the random number of the calling relay).
  //  - Takes entries of the shards `mine`, and of the shards `others` entries older than 10 s.
  //  - Leaves out entries that this relay has claimed within 1 s or another one within 10 s (3 s for the shards
  //    `mine`), and locked ones.
  //  - Takes and returns the soonest due first, entries that were never claimed before the others.
  virtual Result<std::vector<OutboxEntry>> claim(std::span<const Shard> mine, std::span<const Shard> others,
                                                 std::int64_t relay, int limit) = 0;
  // Writes what became of entries: deletes entries that became jobs. An entry that became none is kept with the reason,
  // and waits no longer. Entries that have changed since they were relayed are left, to be relayed again. Safe to
  // repeat.
  virtual Status settle(std::span<const TakenOver> entries) = 0;
  // Returns the jobs of `jobs` that have no entry in this outbox any more.
  virtual Result<std::vector<JobId>> gone(std::span<const JobId> jobs) = 0;
  // Deletes entries whose idempotency key had a job already, a week after settle() recorded that.
  virtual Status forget_existing() = 0;
  virtual Result<OutboxSize> size() = 0;
};

// Which entries a request asks about: the entry of one job, or all entries of a business key.
struct EntryQuery {
  JobId job_id = 0;    // 0: asks by biz_id
  std::string biz_id;  // empty: asks by job_id
};

// What a database says about shards.
struct ShardsHere {
  ShardSet living;                      // they live in it: it accepts their jobs
  std::map<Shard, DatabaseId> partner;  // they move from or to it: the other database of the move
};

// Thread: owner only.
class OutboxLookup {
 public:
  virtual ~OutboxLookup() = default;

  // For each query, in order: whether an entry waits in this outbox. Sees all that was committed before the call.
  virtual Result<std::vector<bool>> are_waiting(std::span<const EntryQuery> queries) = 0;
  // Notifies the relays of all nodes that entries wait.
  virtual Status announce() = 0;
  // Sees all that was committed before the call.
  virtual Result<ShardsHere> shards_here() = 0;
};

// The database where entries become jobs.
// Thread: owner only.
class IntakeStore {
 public:
  // How long after it was read in the outbox an entry may be taken over.
  static constexpr Duration kHandOver = std::chrono::seconds(60);
  virtual ~IntakeStore() = default;

  // Creates the jobs in one transaction; one reply per entry, in order. If the job of an entry was made before, and the
  // entry has another changed_at than it had then, its change is applied to the job; TakenOver::error says where it is
  // too late for that. `source`: the database of the outbox. `valid_until`: by this database's clock, at most kHandOver
  // after the entries were read. Error conflict: another transaction holds a key, a type is not mirrored here yet,
  // valid_until has passed, or a changed entry was read before its job was made or last changed in this way. Error
  // moved: a shard does not live here. May be repeated after every Error.
  virtual Result<std::vector<TakenOver>> take_over(DatabaseId source, WallTime valid_until,
                                                   std::span<const OutboxEntry> entries) = 0;

  // Returns up to `limit` records: the jobs of these shards that were relayed from `source` and whose entries are not
  // known to be deleted. A new job is returned from a minute after it was relayed. An entry whose key another job had
  // is returned after a week, once that job has left history, too. Also deletes records whose entries were gone ten
  // minutes ago.
  virtual Result<std::vector<JobId>> remembered(DatabaseId source, std::span<const Shard> shards, int limit) = 0;
  // Records that the entries of these jobs are gone.
  virtual Status note_gone(std::span<const JobId> jobs) = 0;
};

}  // namespace tocsin
