// Moves shards from one database to another while they are in use, step by step; each step may be repeated, so that
// whoever calls it again continues what was interrupted. Speaks to the databases alone, not to nodes.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>

#include "node/open_databases.h"
#include "postgres/pg_move_store.h"

namespace tocsin {

struct MoveOptions {
  // How the target's server reaches the source, where that is not how this program does; empty: the same.
  std::string source_url;
  // The shard stands still for no longer than this while the target catches up; then it goes on where it was, and the
  // move tries again.
  std::chrono::milliseconds longest_pause{1000};
};

// Thread: owner only.
class ShardMover {
 public:
  ShardMover(const std::vector<OpenDatabase>& databases, MoveOptions options, OnStep on_step);

  // Returns when the shard lives in `target` alone. Error invalid: it cannot be moved there; unavailable or in_doubt: a
  // database is away, call again.
  Status move(Shard shard, Place target);
  // Continues whatever is under way.
  Status resume(const ShardMove& under_way) { return move(under_way.shard, under_way.target); }
  // Error invalid: the shard has moved already.
  Status abort(Shard shard);
  // Moves as few shards as can be, so that every database has as many, give or take one.
  Status rebalance(const std::vector<Place>& places);
  Result<std::vector<ShardMove>> under_way() { return home().list(); }

 private:
  struct End {
    OpenDatabase database;
    Session session;
    PgMoveStore store;
    explicit End(const OpenDatabase& of);
  };

  PgMoveStore& at(Place place) { return ends_.at(place).store; }
  PgMoveStore& home() { return at(0); }
  const std::string& name(Place place) { return ends_.at(place).database.name; }
  // Runs it until it succeeds, or fails for good, or a minute has passed.
  Status patiently(const std::function<Status()>& step);
  Status continue_move(Shard shard, Place target);
  Status note(const ShardMove& move);
  Status mirror_types(const ShardMove& move);
  Status copy(const ShardMove& move);
  Status wait_until_close(const ShardMove& move);
  Status switch_over(ShardMove& move);
  Result<bool> try_switch(ShardMove& move);
  Status complete(ShardMove& move);
  Status roll_back(ShardMove& move);
  Status unlink(const ShardMove& move);
  Status clear(const ShardMove& move, Place place);
  Status end(const ShardMove& move);

  const MoveOptions options_;
  const OnStep on_step_;
  std::map<Place, End> ends_;
};

}  // namespace tocsin
