// PgOutbox, PgIntake, PgOutboxLookup: the statements about the outbox. It holds jobs (entries) that SQL created in a
// database where their shards do not live; a relay brings them to the shards' databases. OutboxRelay (multidb) uses
// PgOutbox and PgIntake, OutboxWaiter uses PgOutboxLookup. ports/outbox_store.h says what each call does. The session
// must outlive the store. Thread: the session's owner.
#pragma once

#include <span>
#include <vector>

#include "ports/outbox_store.h"
#include "postgres/session.h"

namespace tocsin {

// In the database where the entries wait.
class PgOutbox final : public OutboxStore {
 public:
  explicit PgOutbox(Session& session) : session_(session) {}
  Result<bool> is_empty() override;
  Result<std::vector<OutboxEntry>> claim(std::span<const Shard> mine, std::span<const Shard> others, std::int64_t relay,
                                         int limit) override;
  Status settle(std::span<const TakenOver> entries) override;
  Result<std::vector<JobId>> gone(std::span<const JobId> jobs) override;
  Status forget_existing() override;
  Result<OutboxSize> size() override;

 private:
  Session& session_;
};

// In the database where the entries wait: for requests that wait until entries are relayed, or until a node knows where
// a shard lives.
class PgOutboxLookup final : public OutboxLookup {
 public:
  explicit PgOutboxLookup(Session& session) : session_(session) {}
  Result<std::vector<bool>> are_waiting(std::span<const EntryQuery> queries) override;
  Status announce() override;
  Result<ShardsHere> shards_here() override;

 private:
  Session& session_;
};

// In the database where the entries become jobs.
class PgIntake final : public IntakeStore {
 public:
  explicit PgIntake(Session& session) : session_(session) {}
  Result<std::vector<TakenOver>> take_over(DatabaseId source, WallTime valid_until,
                                           std::span<const OutboxEntry> entries) override;
  Result<std::vector<JobId>> remembered(DatabaseId source, std::span<const Shard> shards, int limit) override;
  Status note_gone(std::span<const JobId> jobs) override;

 private:
  Session& session_;
};

}  // namespace tocsin
