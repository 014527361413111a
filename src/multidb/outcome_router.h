// The finisher's store of a node with several databases: writes outcomes where their jobs live, because a shard may
// have moved since the claim. The token moves with the row, so it guards the outcome there as well.
#pragma once

#include <functional>
#include <map>

#include "postgres/pg_job_store.h"

namespace tocsin {

struct OtherDatabases {
  DatabaseId own = 0;
  std::map<DatabaseId, SessionConfig> sessions;  // without this one
  std::function<DatabaseId(Shard)> database_of;
};

// Thread: owner only.
class OutcomeRouter : public PgJobStore {
 public:
  OutcomeRouter(Session& own, const Clock& clock, const OtherDatabases& others)
      : PgJobStore(own, clock), clock_(clock), others_(others) {}

  // Writes to the own database first. Outcomes of a database that is unavailable answer `busy`; it is not asked again
  // for twice the time that this took, so that waiting for it takes a third of the time at most. `within` bounds the
  // call to each database.
  using JobStore::finish;
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node,
                                          Duration within) override;

 protected:
  // Asks one database. `place`: not this one's.
  virtual Result<std::vector<FinishReply>> finish_at(DatabaseId place, std::span<const FinishRequest> requests,
                                                     const std::string& node, Duration within);
  virtual Result<std::vector<FinishReply>> finish_here(std::span<const FinishRequest> requests, const std::string& node,
                                                       Duration within) {
    return PgJobStore::finish(requests, node, within);
  }

 private:
  struct Other {
    Session session;
    PgJobStore store;
    Other(const SessionConfig& config, const Clock& clock) : session(config), store(session, clock) {}
  };

  const Clock& clock_;
  const OtherDatabases& others_;
  std::map<DatabaseId, Other> open_;
  std::map<DatabaseId, MonoTime> left_alone_until_;
};

}  // namespace tocsin
