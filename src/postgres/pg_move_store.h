// PgMoveStore: the statements by which a shard moves from one database to another, except the copying
// (pg_shard_copy.h). Implements MoveStore, which says what each call does and its Errors (ports/move_store.h).
// ShardMover and MoveWatch have one for each database. Thread: the one that owns the session.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ports/move_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgMoveStore final : public MoveStore {
 public:
  // `session` must outlive the store.
  explicit PgMoveStore(Session& session) : session_(session) {}

  // Control database only.
  Result<std::vector<ShardMove>> list() override;
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target,
                                        std::optional<std::int64_t> driver) override;
  Result<bool> take_over(ShardMove& move) override;
  Status set_state(ShardMove& move, ShardMove::State state) override;
  Status keep(const ShardMove& move) override;
  Status set_writable(ShardMove& move) override;
  Status flip(ShardMove& move) override;
  Result<std::vector<std::string>> nodes_without(DatabaseId database_id) override;
  Result<std::int64_t> map_version() override;
  Result<std::vector<std::string>> nodes_behind(std::int64_t version) override;
  Status end(const ShardMove& move) override;
  Status recall(const ShardMove& lost) override;
  // Source and target.
  Result<std::optional<ShardMove>> noted(Shard shard) override;
  Status end_others() override;
  Status note(const ShardMove& move) override;
  Status note_successor(const ShardMove& move) override;
  Status forget(const ShardMove& move) override;
  Result<std::vector<std::string>> tables(Shard shard) override;
  Result<std::int64_t> delete_rows(const ShardMove& move, const std::string& table) override;
  // Source only.
  Status freeze(const ShardMove& move) override;
  Status unfreeze(const ShardMove& move) override;
  Status thaw(const ShardMove& move) override;
  Result<std::string> take_counts(const ShardMove& move) override;
  Status empty_counts(const ShardMove& move) override;
  // Target only.
  Status can_open(const ShardMove& move) override;
  Status open(const ShardMove& move) override;
  Status add_counts(const ShardMove& move, const std::string& counts) override;

 private:
  Session& session_;
};

// Calls `work` in a transaction that first locks the row of the move in this database, and checks that `move.driver`
// (the command that carries out the move) still drives it. `limit`: usual: the session's; day: statements have no
// time-out, and the call may take a day. Error superseded: another driver has the move; nothing is written.
enum class TimeLimit { usual, day };
Status as_driver(Session& session, const ShardMove& move, const std::function<void(pqxx::work&)>& work,
                 TimeLimit limit = TimeLimit::usual);

// The tables that hold rows of the shard, with their schema: its live table, the days of history, and tocsin.relayed
// (jobs that came from outboxes). Throws what libpqxx throws.
std::vector<std::string> job_tables(pqxx::transaction_base& tx, Shard shard);

}  // namespace tocsin
