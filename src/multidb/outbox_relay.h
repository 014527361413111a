// OutboxRelay: relays outbox entries (ADR 0022): jobs that SQL callers created in a database where their shard does not
// live go from that database's outbox to the shard's database. Every node relays entries of the shards that it owns, so
// the jobs go straight to its own engine; if two nodes relay an entry, it becomes one job. Any node relays entries that
// have waited for ten seconds, because their owner may not reach the outbox.
//
// Each database has two threads: one reads its outbox, once a second and when woken; one inserts the entries of other
// outboxes. At most one batch (200 entries) is under way per pair of databases, so a database that hangs delays no
// other pair. A failure is reported to Metrics, and the entries are tried again; an entry that the target refuses for
// good stays in the outbox with the reason. A node with a single database has no relay.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "metrics/metrics.h"
#include "ports/job_store.h"
#include "ports/outbox_store.h"
#include "ports/type_store.h"
#include "postgres/session.h"

namespace tocsin {

// A session of the relay with one database; used by one thread.
class RelaySession {
 public:
  virtual ~RelaySession() = default;
  virtual OutboxStore& outbox() = 0;
  virtual IntakeStore& intake() = 0;
  virtual TypeStore& types() = 0;
};

struct RelayDatabase {
  DatabaseId database_id = 0;
  std::string name;
  std::function<std::unique_ptr<RelaySession>()> open_session;  // called by the constructor of OutboxRelay, twice
};

// Its sessions are with PostgreSQL and connect at their first call.
RelayDatabase relay_database(DatabaseId database_id, std::string name, SessionConfig session);

// All may be called on any of the relay's threads.
struct RelayHooks {
  // Returns a lower bound of the database's clock; nullopt: not known, or the database does not answer. Nothing is
  // relayed to it then.
  std::function<std::optional<WallTime>(DatabaseId)> time_at_least;
  std::function<Status(DatabaseId, TypeStore&)> make_types_known;  // updates the mirror of the types there
  std::function<void(const Candidate&)> hint;                      // called after a pending job was inserted
  std::function<void()> moved;  // called when a shard does not live where the map says: read the map again
};

// Thread: owner only, except set_shards() and wake() (any).
class OutboxRelay {
 public:
  OutboxRelay(std::vector<RelayDatabase> databases, const Clock& clock, Metrics& metrics, RelayHooks hooks);
  ~OutboxRelay();

  void start();
  // Each outbox in turn waits two seconds at most for the answers to its batches; then all batches given to the
  // inserting threads are finished. Another node relays entries that were left. May be repeated.
  void stop();
  // Sets this node's shards (sorted), and the map that says where shards live. Until the first call nothing is relayed.
  void set_shards(const std::vector<Shard>& mine, const ShardMap& map);
  // The outbox of this database may have new entries.
  void wake(DatabaseId source);

  // One round of a database's threads, for the simulator, which has no threads: it calls them at least once a second
  // and whenever there may be work. REQUIRES: not started.
  void step_outbox(DatabaseId source);
  void step_intake(DatabaseId target);

 private:
  struct Shards {
    std::vector<Shard> mine, others;
  };
  using ShardsAt = std::map<DatabaseId, Shards>;
  class Intake;
  class Outbox;
  class Shared;

  void add_metrics(Metrics& metrics);

  std::unique_ptr<Shared> shared_;
  std::map<DatabaseId, std::unique_ptr<Intake>> intakes_;
  std::map<DatabaseId, std::unique_ptr<Outbox>> outboxes_;
};

}  // namespace tocsin
