// The copying of a moving shard, which is PostgreSQL's: a publication of its rows and a slot at the source, a
// subscription at the target.
//
// Every change checks who drives the move, as PgMoveStore's do, but for three that cannot be in a transaction: making a
// slot, dropping slots, and reading anew which tables there are. Of those PgMoveStore::end_others() leaves none behind.
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
  // Whether every table that there is, is published.
  Result<bool> publishes_all(const ShardMove& move);
  Status unpublish(const ShardMove& move);
  Result<std::string> slot(const ShardMove& move);  // its name
  // With all that uses them. `of_copies`: from stop_workers(). Error conflict: they are in use.
  Status drop_slots(const ShardMove& move, const std::string& of_copies);
  // Whether all these slots are there.
  Result<bool> has_slots(const std::vector<std::string>& names);
  Result<std::string> position();
  // Bytes of the log that the target has not confirmed up to `position`; 0: it has all of it.
  Result<std::int64_t> behind(const ShardMove& move, const std::string& position);

  // ---- target

  // History tables for every table of the source.
  Status make_history(const std::vector<std::string>& tables);
  // `source`: its connection string, as this server reaches it; also of a subscription that is there. Error invalid:
  // it does not reach it, or another database.
  Status subscribe(const ShardMove& move, const std::string& source, const std::string& slot);
  // What keeps the subscription from working that an operator has to mend; empty: nothing.
  Result<std::string> why_no_worker(const ShardMove& move);
  // How often its workers have failed; never decreases but when the server crashes.
  Result<std::int64_t> failures(const ShardMove& move);
  // Tables of which the copy is complete, and all.
  Result<std::pair<int, int>> copied(const ShardMove& move);
  // The slots that tables need which are copied, but have not caught up. A source that died in a certain moment has
  // dropped one of them although the target never heard that it did: that table catches up no more.
  Result<std::vector<std::string>> slots_needed(const ShardMove& move);
  // Switches the subscription off and ends its workers. The slots that they may have left at the source, as a LIKE
  // pattern; empty: none. Error conflict: they do not end.
  Result<std::string> stop_workers(const ShardMove& move);
  // Asks nothing of the source. REQUIRES: stop_workers().
  Status unsubscribe(const ShardMove& move);

 private:
  Session& session_;
};

}  // namespace tocsin
