// The outbox (ADR 0022): jobs that SQL callers created in a database where their shards do not live. OutboxStore is the
// side that entries leave, IntakeStore the side where they become jobs. Used by multidb/outbox_relay; implemented by
// PgOutbox and PgIntake (src/postgres) and by FakeOutbox (tests/support).
//
// An entry is claimed, in a transaction of its own, before it is relayed: a claimed entry cannot be cancelled in its
// outbox any more. Taking it over inserts the job and records that in one transaction, so any node may repeat it; then
// the entry is deleted. No node relays an entry that it read longer ago than kHandOver, and the record is kept for
// longer than that.
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

struct OutboxEntry {
  JobId job_id = 0;
  TypeId type_id = 0;
  int max_attempts = 0;
  bool is_cancelled = false;  // it becomes a cancelled job
  WallTime action_time{}, gmt_create{};
  std::string biz_id;
  std::optional<std::string> idempotency_key;
  std::optional<std::int64_t> body_hash;
  std::optional<std::string> attribute_json;
};

// The result of an entry: a new job, unless `error` or `existing` is set.
struct TakenOver {
  JobId job_id = 0;
  TypeId type_id = 0;
  std::optional<WallTime> fire_at;  // of a new pending job
  std::optional<JobId> existing;    // the job that had the idempotency key
  std::string error;                // refused, and why
};

struct OutboxSize {
  std::int64_t waiting = 0;  // entries that are not relayed yet
  std::int64_t refused = 0;
  Duration oldest{0};  // how long the oldest of them has waited
};

// The outbox of the database that the entries leave.
// Thread: owner only.
class OutboxStore {
 public:
  virtual ~OutboxStore() = default;

  virtual Result<bool> is_empty() = 0;
  // Claims up to `limit` entries for `relay`: of the shards `mine`, and of `others` entries older than 10 s; the
  // soonest due first, those tried before last. Leaves out entries that another relay has claimed within 10 s, or
  // `relay` itself within a second, and locked ones.
  virtual Result<std::vector<OutboxEntry>> claim(std::span<const Shard> mine, std::span<const Shard> others,
                                                 std::int64_t relay, int limit) = 0;
  // Deletes entries that became jobs; keeps the others, with the reason. Safe to repeat.
  virtual Status settle(std::span<const TakenOver> entries) = 0;
  // Which of these jobs have no entry in the outbox any more.
  virtual Result<std::vector<JobId>> gone(std::span<const JobId> jobs) = 0;
  // Entries whose key had a job already are kept for a week.
  virtual Status forget_existing() = 0;
  virtual Result<OutboxSize> size() = 0;
};

// The database where entries become jobs.
// Thread: owner only.
class IntakeStore {
 public:
  static constexpr Duration kHandOver = std::chrono::seconds(60);
  virtual ~IntakeStore() = default;

  // Creates the jobs in one transaction; a reply per entry, in order. `valid_until`: by this database's clock, at most
  // kHandOver after the entries were read. Error conflict: another transaction holds a key, a type is not mirrored here
  // yet, or valid_until has passed; moved: a shard lives elsewhere. May be repeated after every Error.
  virtual Result<std::vector<TakenOver>> take_over(DatabaseId source, WallTime valid_until,
                                                   std::span<const OutboxEntry> entries) = 0;

  // Jobs recorded as relayed from `source` for these shards: up to `limit` whose entries were not checked yet.
  // Forgets what has been gone for more than ten minutes.
  virtual Result<std::vector<JobId>> remembered(DatabaseId source, std::span<const Shard> shards, int limit) = 0;
  // Records that their entries are gone.
  virtual Status note_gone(std::span<const JobId> jobs) = 0;
};

}  // namespace tocsin
