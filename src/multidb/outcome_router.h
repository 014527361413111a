// OutcomeRouter: the JobStore of a finisher (the stage that writes outcomes) on a node with several databases. Owned by
// DatabaseEngine (node/database_engine.h). A shard may have moved to another database since its job was claimed, so
// each outcome is written in the database where the shard lives by the shard map. The token of the claim moves with the
// row, so it guards the outcome there as well.
#pragma once

#include <functional>
#include <map>

#include "postgres/pg_job_store.h"

namespace tocsin {

struct OtherDatabases {
  DatabaseId own = 0;                            // the database of the finisher's engine
  std::map<DatabaseId, SessionConfig> sessions;  // of the others that this node was started with
  std::function<DatabaseId(Shard)> database_of;  // by the shard map; called by the finishers of all databases
};

// Thread: owner only (the finisher's).
class OutcomeRouter : public PgJobStore {
 public:
  // `failed`: called with failures of other databases, which are no Error of a call. REQUIRES: all arguments outlive
  // the object.
  OutcomeRouter(Session& own, const Clock& clock, const OtherDatabases& others,
                std::function<void(const Error&)> failed)
      : PgJobStore(own, clock), clock_(clock), others_(others), failed_(std::move(failed)) {}

  // Replies in the order of `requests`.
  //  - The own database is written first. It also gets outcomes of shards that live in no database of `sessions`. Its
  //    failure is the Error of the call, and no other database is called.
  //  - Another database that fails: its outcomes are answered `busy`, and the finisher tries them again. It is not
  //    called for twice the duration of the failed call (at least 2 s), so that at most a third of the time is spent on
  //    it.
  //  - Another database that refuses a row: it is called with halves of its outcomes until that row is alone; the other
  //    rows are written. The refusal is the Error of the call only if there is a single request.
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) override;
  // Limits the call to each database.
  void answer_within(Duration limit) override {
    limit_ = limit;
    PgJobStore::answer_within(limit);
  }

 protected:
  // The calls of another database and of the own one. The unit test overrides both.
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
