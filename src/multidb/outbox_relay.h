// OutboxRelay: relays outbox entries (ADR 0022): jobs that SQL callers created in a database where their shard does not
// live. It brings each entry from that database's outbox to the shard's database, where it becomes a job. Made by the
// node (node/node_parts.cc) if it has several databases.
//
// Every node relays the entries of the shards that it owns, so the jobs go straight to its own engine. Any node relays
// entries that have waited for ten seconds, because the owner may not reach the outbox. If two nodes relay an entry, it
// becomes one job.
//
// Each database has two threads. One reads its outbox, once a second and when woken. The other inserts entries of the
// other outboxes. At most one batch (200 entries) is under way for each pair of databases, so a database that hangs
// delays no other pair. A failure is reported to Metrics, and the entries are tried again. An entry that the target
// refuses for good stays in the outbox with the reason.
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

// A database whose sessions are with PostgreSQL; they connect at their first call.
RelayDatabase relay_database(DatabaseId database_id, std::string name, SessionConfig session);

// What the node does for the relay. Thread: any of the relay's.
struct RelayHooks {
  // Returns a lower bound of the database's clock. nullopt: it is not known, or the database does not answer; nothing
  // is relayed to the database then.
  std::function<std::optional<WallTime>(DatabaseId)> time_at_least;
  std::function<Status(DatabaseId, TypeStore&)> make_types_known;  // updates the type mirror of the database
  std::function<void(const Candidate&)> hint;                      // called after a pending job was inserted
  std::function<void()> moved;  // called if a shard does not live where the map says: read the map again
};

// Thread: owner only, except set_shards() and wake() (any).
class OutboxRelay {
 public:
  OutboxRelay(std::vector<RelayDatabase> databases, const Clock& clock, Metrics& metrics, RelayHooks hooks);
  ~OutboxRelay();

  void start();
  // Finishes the batches under way. Each outbox in turn waits at most two seconds for their answers; entries without an
  // answer are relayed by another node. May be called again.
  void stop();
  // Sets this node's shards (sorted), and the map of which database each shard lives in. Until the first call nothing
  // is relayed.
  void set_shards(const std::vector<Shard>& mine, const ShardMap& map);
  // Call when the outbox of this database may have new entries.
  void wake(DatabaseId source);

  // One round of a database's threads. The simulator, which has no threads, calls them at least once a second and
  // whenever there may be work. REQUIRES: not started.
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
