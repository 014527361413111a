// What moving a shard to another database asks of the databases: one store per database and move.
//
// The copy is PostgreSQL's: a publication of the shard's rows and a slot at the source, a subscription at the target.
// Every change checks, in its transaction, that `driver` is still who drives the move; every verb may be repeated.
// Thread: owner only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postgres/session.h"
#include "tocsin/member_store.h"

namespace tocsin {

struct ShardMove {
  enum class State { copying, switching, switched, aborting };
  Shard shard = 0;
  Place source = 0, target = 0;
  std::int64_t driver = 0;
  State state = State::copying;
};
const char* to_string(ShardMove::State state);

class PgMoveStore {
 public:
  explicit PgMoveStore(Session& session) : session_(session) {}

  // ---- home

  Result<std::vector<ShardMove>> list();
  // Becomes the driver of the shard's move, which begins with this unless it is under way. Without a target: only of
  // one that is. nullopt: there is nothing to do. Error invalid: it is on its way to another database.
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<Place> target);
  // Error invalid, here and wherever something is changed: another driver has it.
  Status set_state(ShardMove& move, ShardMove::State state);
  // The moment of the move: the shard map says the target, and the state is `switched`.
  Status flip(ShardMove& move);
  Status end(const ShardMove& move);

  // ---- source and target

  // Makes the driver known here.
  Status note(const ShardMove& move);
  Status forget(const ShardMove& move);
  // The tables of jobs, live ones and history.
  Result<std::vector<std::string>> tables(Shard shard);
  // Deletes the shard's rows of a table. REQUIRES: it does not live here, and nothing replicates them.
  Result<std::int64_t> delete_rows(const ShardMove& move, const std::string& table);

  // ---- source

  // Error invalid: the server's wal_level is not logical.
  Status publish(const ShardMove& move);
  Status unpublish(const ShardMove& move);
  // After the commit nothing of the shard changes here. Error conflict: an open transaction stands in the way.
  Status freeze(const ShardMove& move);
  // It lives here and changes again. Error conflict: as for freeze.
  Status unfreeze(const ShardMove& move);
  // After the last row is gone.
  Status thaw(const ShardMove& move);
  Result<std::string> position();
  // Bytes of the log that the target has not confirmed up to `position`; 0: it has all of it.
  Result<std::int64_t> behind(const ShardMove& move, const std::string& position);
  Result<std::string> take_counts(const ShardMove& move);  // as JSON, for add_counts

  // ---- target

  // History tables for every table of the source.
  Status make_history(const std::vector<std::string>& tables);
  // `source`: its connection string, as this server reaches it.
  Status subscribe(const ShardMove& move, const std::string& source);
  // Tables of which the copy is complete, and all.
  Result<std::pair<int, int>> copied(const ShardMove& move);
  Status unsubscribe(const ShardMove& move);
  Status open(const ShardMove& move);
  Status add_counts(const ShardMove& move, const std::string& counts);

 private:
  Status change(const ShardMove& move, const std::function<void(pqxx::work&)>& work);

  Session& session_;
};

}  // namespace tocsin
