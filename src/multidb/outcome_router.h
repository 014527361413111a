// OutcomeRouter: the JobStore of a finisher (the stage that writes outcomes) on a node with several databases. It
// writes each outcome in the database where the job's shard lives by the shard map, because the shard may have moved
// since the claim. The token moves with the row, so it guards the outcome there as well.
#pragma once

#include <functional>
#include <map>

#include "postgres/pg_job_store.h"

namespace tocsin {

struct OtherDatabases {
  DatabaseId own = 0;                            // the database of the finisher's engine
  std::map<DatabaseId, SessionConfig> sessions;  // of the others that this node was started with
  std::function<DatabaseId(Shard)> database_of;  // by the shard map; the finishers of all databases call it
};

// Thread: owner only.
class OutcomeRouter : public PgJobStore {
 public:
  // `failed`: told of the failures of other databases, which are no Error of a call. REQUIRES: all arguments outlive
  // it.
  OutcomeRouter(Session& own, const Clock& clock, const OtherDatabases& others,
                std::function<void(const Error&)> failed)
      : PgJobStore(own, clock), clock_(clock), others_(others), failed_(std::move(failed)) {}

  // Replies in the order of `requests`. Writes to the own database first, also outcomes of shards that live in none of
  // `sessions`; its failure is the Error of the call, and no other is called. Outcomes of another database that fails
  // are answered `busy`: the finisher tries them again. That database is not called for twice the duration of the
  // failed call (at least 2 s), so at most a third of the time is spent waiting for it. One that refuses a row is
  // called for fewer until that row is alone, and the others are written. A single request that is refused is the Error
  // of the call.
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) override;
  // Bounds the call to each database.
  void answer_within(Duration limit) override {
    limit_ = limit;
    PgJobStore::answer_within(limit);
  }

 protected:
  // Calls one database: another one, or the own one. The unit test overrides both.
  virtual Result<std::vector<FinishReply>> finish_at(DatabaseId database_id, std::span<const FinishRequest> requests,
                                                     const std::string& node);
  virtual Result<std::vector<FinishReply>> finish_here(std::span<const FinishRequest> requests,
                                                       const std::string& node) {
    return PgJobStore::finish(requests, node);
  }

 private:
  struct Other {
    Session session;
    PgJobStore store;
    Other(const SessionConfig& config, const Clock& clock) : session(config), store(session, clock) {}
  };

  const Clock& clock_;
  const OtherDatabases& others_;
  const std::function<void(const Error&)> failed_;
  Duration limit_ = Duration::max();
  std::map<DatabaseId, Other> open_;
  std::map<DatabaseId, MonoTime> left_alone_until_;
};

}  // namespace tocsin
