// The copying of a moving shard by PostgreSQL's logical replication (ADR 0021): a publication of its rows and a slot at
// the source, a subscription at the target. Used by node/shard_mover.
//
// Every call that writes checks the driver of the move, as PgMoveStore's do, except three that cannot be in a
// transaction: making a slot, dropping slots, and refreshing the list of tables. PgMoveStore::end_others() ends those.
// Thread: owner only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "postgres/pg_move_store.h"

namespace tocsin {

class PgShardCopy {
 public:
  explicit PgShardCopy(Session& session) : session_(session) {}

  // ---- source

  // Error invalid: the server's wal_level is not logical. Waits until every open transaction that has written ends.
  Status publish(const ShardMove& move);
  // Whether all tables of jobs are published.
  Result<bool> publishes_all(const ShardMove& move);
  Status unpublish(const ShardMove& move);
  Result<std::string> slot(const ShardMove& move);  // its name
  // Ends the sessions that use the slots, and drops them. `of_copies`: from stop_workers(). Error conflict: in use.
  Status drop_slots(const ShardMove& move, const std::string& of_copies);
  // Whether all these slots are there.
  Result<bool> has_slots(const std::vector<std::string>& names);
  // The source's current position in its log.
  Result<std::string> position();
  // Bytes of the log that the target has not confirmed up to `position`; 0: it has all of it.
  Result<std::int64_t> behind(const ShardMove& move, const std::string& position);

  // ---- target

  // Creates the history tables that the source has.
  Status make_history(const std::vector<std::string>& tables);
  // Creates the subscription, or updates its connection. `source`: the connection string by which this server reaches
  // the source. Error invalid: it reaches none, or another database.
  Status subscribe(const ShardMove& move, const std::string& source, const std::string& slot);
  // A problem of the subscription that an operator must fix; empty: none.
  Result<std::string> why_no_worker(const ShardMove& move);
  // How often its workers have failed; decreases only when the server crashes.
  Result<std::int64_t> failures(const ShardMove& move);
  // The number of tables whose copy is complete, and of all tables.
  Result<std::pair<int, int>> copied(const ShardMove& move);
  // The slots of tables that are copied but have not caught up. A source that crashed at the wrong moment has dropped
  // such a slot without the target's knowledge; that table never catches up.
  Result<std::vector<std::string>> slots_needed(const ShardMove& move);
  // Disables the subscription and ends its workers. Returns a LIKE pattern of the slots that they may have left at the
  // source; empty: none. Error conflict: they do not end.
  Result<std::string> stop_workers(const ShardMove& move);
  // Drops the subscription without contacting the source. REQUIRES: stop_workers().
  Status unsubscribe(const ShardMove& move);

 private:
  Session& session_;
};

}  // namespace tocsin
