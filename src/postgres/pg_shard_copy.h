// PgShardCopy: copies the rows of a moving shard from its database (source) to another (target) by PostgreSQL's logical
// replication: a publication and a slot at the source, a subscription at the target. Implements ShardCopy, which says
// what each call does, its units and Errors (ports/move_store.h). ShardMover (multidb/shard_mover.h) has one for each
// database. Thread: the one that owns the session.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "postgres/pg_move_store.h"

namespace tocsin {

class PgShardCopy final : public ShardCopy {
 public:
  // `session` must outlive the object.
  explicit PgShardCopy(Session& session) : session_(session) {}

  // Calls for the source.
  Status publish(const ShardMove& move) override;
  Status make_slot(const ShardMove& move) override;
  Result<bool> publishes_all(const ShardMove& move) override;
  Status unpublish(const ShardMove& move) override;
  Result<std::string> slot(const ShardMove& move) override;
  Status drop_slots(const ShardMove& move, const std::string& of_copies) override;
  Result<bool> has_slots(const std::vector<std::string>& names) override;
  Result<std::string> position() override;
  Result<std::int64_t> behind(const ShardMove& move, const std::string& position) override;
  // Calls for the target.
  Result<Subscription> subscription(const ShardMove& move) override;
  Status make_history(const std::vector<std::string>& tables) override;
  Status subscribe(const ShardMove& move, const std::string& source, const std::string& slot) override;
  Result<std::string> why_no_worker(const ShardMove& move) override;
  Result<std::int64_t> failures(const ShardMove& move) override;
  Result<std::pair<int, int>> copied(const ShardMove& move) override;
  Result<std::vector<std::string>> slots_needed(const ShardMove& move) override;
  Result<std::string> stop_workers(const ShardMove& move) override;
  Status unsubscribe(const ShardMove& move) override;

 private:
  Session& session_;
};

}  // namespace tocsin
