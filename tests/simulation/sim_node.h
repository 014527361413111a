// SimNode: one node of a simulated cluster. It has the real engine for each database, the real membership and the real
// permit renewer (admission/permit_renewer.h). Each stage runs on a fiber. Its handlers answer after a random time.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/permit_renewer.h"
#include "cluster/heartbeat.h"
#include "cluster/shard_owner.h"
#include "pipeline/engine.h"
#include "simulation/checker.h"
#include "simulation/sim_database.h"
#include "simulation/sim_functions.h"
#include "support/fake_sessions.h"

namespace tocsin {

// What all parts of one simulated world share.
struct SimContext {
  Scheduler& scheduler;
  Random& random;
  Trace& trace;
  SimDatabases& databases;
  Checker& checker;
  bool hears_notifications = false;  // NOTIFY reaches the nodes
  bool has_foreign_writer = false;   // a writer reads its clock long before its transaction has an id
  FakeBusiness business{};           // whose functions the types of kind `sql` call
  bool has_rivals = false;           // several nodes own every shard: none knows what another releases
};

// shared: the shard map says which shards the node owns. everything: the node believes that it owns all.
enum class Ownership { shared, everything };

// Prefix of the names of types whose handlers take about a second.
inline constexpr std::string_view kSlowType = "slow.";

// Probabilities per attempt.
struct HandlerHabits {
  double fails = 0.2;
  double gives_up = 0.03;   // the job is dead
  double is_full = 0.03;    // the attempt is not started
  double is_at_once = 0.1;  // answers before start() returns
  double overruns = 0.1;    // runs longer than its lease
  double hangs = 0.03;      // runs 2 to 22 times as long as its lease
};

using Counters = std::array<std::int64_t, kCounters>;
const char* name_of(Counter counter);

// The data members are the parts of a node, as in src/node. Thread: owner only.
class SimNode final : public EventSink {
 public:
  SimNode(SimContext& world, std::string name, EngineConfig config, Ownership ownership, int claimers);
  ~SimNode() override;

  // Starts a new process. REQUIRES: not up.
  void start(std::shared_ptr<const TypeCatalog> catalog);
  // Kills the process: all of it is lost, store calls under way included.
  void crash();
  // As SIGTERM: the node stops claiming, finishes or releases its jobs, and leaves. After `grace` it is killed.
  void drain(Duration grace);
  // Runs no stage until then, as a stopped virtual machine.
  void freeze_until(MonoTime time) { frozen_until_ = time; }

  // The node does not reach this database until then.
  void cut_off(DatabaseId database_id, MonoTime until) {
    parts_[static_cast<std::size_t>(database_id)].wire.cut_until(until);
  }

  MonoTime frozen_until() const { return frozen_until_; }

  bool is_up() const { return permit_renewer_ != nullptr; }
  bool reaches_control() const { return is_up() && !parts_.front().wire.is_cut(); }
  bool is_draining() const { return is_up() && parts_.front().engine->shared().membership.is_draining(); }
  std::vector<Shard> shards() const;  // the shards that it scans, in order
  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);
  // The notifications that the node gets: tocsin_member, tocsin_due (hint), and a request to scan a database from the
  // floor (sweep). Each is dropped while the node is down or cut off.
  void members_changed();
  void hint(const Candidate& job);
  void sweep(DatabaseId database_id);
  // Gives the node a consumer's waiting request. False: the node takes none.
  bool lease(Poll poll);
  // A consumer has ended or extended a lease through this node's API.
  void end_lease(const Lease& lease);
  void extend_lease(TypeId type, const Lease& lease, Duration ttr);
  // Whether the job is in memory, or due in a lane that is backlog.
  bool keeps(JobId job) const;
  // Whether memory or the time wheel refused a job within the lookahead, so that the next scan has to find it again.
  bool has_refused_lately() const;
  // Whether it was lent a permit and a token to start one more job of the type.
  bool admits(const BizType& type) const;
  const std::string& name() const { return name_; }

  void set_habits(const HandlerHabits& habits) { habits_ = habits; }
  // Handlers that still run answer within `time`.
  void hurry_handlers(Duration time);

  // Checks that the node holds no job in memory. Call when there is nothing to do.
  void check_at_rest();

  const Counters& counters() const { return counters_; }

  // EventSink
  void count(Counter what, std::int64_t n) override;
  void started(TypeId, Duration) override {}
  void failed(std::string_view stage, const Error& error) override;

 private:
  class Loop;
  class SimHandler;
  class ScannedStore;
  struct Cluster;  // the node's membership: heartbeat and shard owner
  struct Run {
    ClaimedJob claimed;
    Outcome outcome;
    Handler::Finish finish;
  };
  struct Part {  // for one database
    Part(SimDatabase& its, SimContext& world, int claimers);
    SimDatabase& database;
    Wire wire;
    std::vector<Candidate> read;  // rows that a scan read in this step
    std::vector<std::unique_ptr<FakeJobStore>> stores;
    std::unique_ptr<Engine> engine;
    std::map<std::uint64_t, Run> runs;  // attempts whose handlers run
    std::unique_ptr<SimFunctions> functions;
  };

  void start_engine(Part& part);
  void set_shards(const std::vector<Shard>& mine, const ShardMap& map);
  Part& part_of(JobId job) { return parts_[static_cast<std::size_t>(world_.databases.of(job).id)]; }
  void begin(const ClaimedJob& job, Handler::Finish finish);
  void answer(Part& part, std::uint64_t run);
  Outcome any_outcome();
  Duration any_run_time(const ClaimedJob& job);
  void poll_drain(std::uint64_t process, MonoTime give_up);
  void check_audit(std::int64_t found);
  void tell_read(Part& part);
  void return_permits();
  void join();
  bool is_drained() const;
  void check_bounds(const Part& part);
  void check_running_together();

  SimContext& world_;
  const std::string name_;
  const EngineConfig config_;
  const Ownership ownership_;
  HandlerHabits habits_;
  std::unique_ptr<SimHandler> handler_;
  NodeId id_ = 0;  // of the present process
  std::shared_ptr<FlowControl> flow_;
  std::shared_ptr<PollQueue> polls_;
  std::deque<Part> parts_;  // by database id
  FakePermitStore permit_store_;
  std::unique_ptr<PermitRenewer> permit_renewer_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::uint64_t last_run_ = 0;
  std::uint64_t process_ = 0;  // grows with every start
  MonoTime frozen_until_{};
  Counters counters_{};
  std::optional<MonoTime> refused_at_;  // when memory or the time wheel refused a job last
};

}  // namespace tocsin
