#include "simulation/sim_node.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace tocsin {

const char* name_of(Counter counter) {
  constexpr const char* kNames[] = {"candidates",      "refused",        "claims_won",     "claims_lost",
                                    "claims_in_doubt", "backlog_claims", "finished_done",  "finished_retry",
                                    "finished_dead",   "given_back",     "stale_finishes", "expired_starts",
                                    "buried",          "dropped_late",   "store_errors"};
  static_assert(std::size(kNames) == kCounters);
  return kNames[static_cast<int>(counter)];
}

// Runs one stage, as node/loop_thread does on a thread of its own.
class SimNode::Loop final : public Waker {
 public:
  Loop(SimNode& node, Stage& stage) : node_(node), stage_(stage) {
    fiber_ = node.world_.scheduler.spawn([this] { run(); });
  }
  ~Loop() override { node_.world_.scheduler.kill(fiber_); }

  void wake() override {
    if (is_woken_) return;
    is_woken_ = true;
    if (is_idle_) node_.world_.scheduler.wake(fiber_);
  }

 private:
  void run() {
    Scheduler& scheduler = node_.world_.scheduler;
    while (true) {
      if (node_.frozen_until_ > scheduler.now()) scheduler.wait_until(node_.frozen_until_);
      node_.world_.faults.before_step();
      is_woken_ = false;
      const MonoTime next = stage_.step(scheduler.now());
      node_.check_bounds();
      // A step costs time: what never rests moves the clock and is noticed.
      if (next <= scheduler.now() || is_woken_) {
        scheduler.sleep(Duration(1 + node_.world_.random.below(40)));
        continue;
      }
      is_idle_ = true;
      scheduler.wait_until(next);
      is_idle_ = false;
    }
  }

  SimNode& node_;
  Stage& stage_;
  Scheduler::FiberId fiber_ = 0;
  bool is_woken_ = false;
  bool is_idle_ = false;
};

class SimNode::SimHandler final : public Handler {
 public:
  explicit SimHandler(SimNode& node) : node_(node) {}
  void start(const ClaimedJob& job, Finish finish) override { node_.begin(job, std::move(finish)); }

 private:
  SimNode& node_;
};

struct SimNode::Cluster {
  Cluster(SimContext& world, const ClusterConfig& c, SimNode& node)
      : config(c),
        heartbeat_store(world.database, &world.scheduler, &world.faults, 20),
        owner_store(world.database, &world.scheduler, &world.faults, 21),
        heartbeat(config, heartbeat_store, view, node,
                  {[&node](MonoTime now) {
                     return std::vector{ScannedPlace{0, node.engine_->shared().scan_age(now)}};
                   },
                   [&node](MonoTime until) { node.engine_->trust_until(until); }, [this] { return owner.used_map(); }}),
        owner(config, owner_store, view, node,
              {[&node](const std::vector<Shard>& shards, const ShardMap&) { node.engine_->set_shards(shards); },
               [this] { heartbeat.request(); }}) {}

  const ClusterConfig config;
  FakeMemberStore heartbeat_store, owner_store;
  LatestView view{nullptr};
  Heartbeat heartbeat;
  ShardOwner owner;
};

SimNode::SimNode(SimContext& world, std::string name, EngineConfig config, Ownership ownership, int claimers)
    : world_(world),
      name_(std::move(name)),
      config_(std::move(config)),
      ownership_(ownership),
      handler_(std::make_unique<SimHandler>(*this)),
      permit_store_(world.database, &world.scheduler, &world.faults, 22) {
  for (int i = 0; i < claimers + 3; ++i)
    stores_.push_back(std::make_unique<FakeJobStore>(world_.database, &world_.scheduler, &world_.faults, i));
}

SimNode::~SimNode() {
  if (is_up()) crash();
}

void SimNode::start(std::shared_ptr<const TypeCatalog> catalog) {
  TOCSIN_ASSERT(!is_up());
  ++process_;
  world_.trace.line(world_.scheduler.now(), name_ + " starts");
  EngineStores stores{*stores_[0], {}, *stores_[1], *stores_[2]};
  for (std::size_t i = 3; i < stores_.size(); ++i) stores.claimers.push_back(stores_[i].get());
  const auto find_handler = [this](const BizType& type) {
    return type.handler_kind == "sim" ? handler_.get() : nullptr;
  };
  std::vector<Shard> shards;
  for (int shard = 0; ownership_ == Ownership::everything && shard < world_.database.shards(); ++shard)
    shards.push_back(static_cast<Shard>(shard));
  id_ = 1 + static_cast<NodeId>(world_.random.below(1'000'000'000));
  flow_ = std::make_shared<FlowControl>();
  keeper_ = std::make_unique<PermitKeeper>(PermitConfig{id_}, *flow_, permit_store_, *this,
                                           [this](TypeId type) { return engine_->waiting(type); });
  EngineConfig config = config_;
  config.flow = flow_;
  engine_ = std::make_unique<Engine>(config, shards, stores, find_handler, *this,
                                     static_cast<std::uint64_t>(world_.random.int64()));
  std::vector<Waker*> wakers;
  for (Stage* stage : engine_->stages())
    wakers.push_back(loops_.emplace_back(std::make_unique<Loop>(*this, *stage)).get());
  engine_->set_wakers(wakers);
  keeper_->set_waker(loops_.emplace_back(std::make_unique<Loop>(*this, *keeper_)).get());
  set_catalog(std::move(catalog));
  if (ownership_ == Ownership::shared) join();
}

void SimNode::set_catalog(std::shared_ptr<const TypeCatalog> catalog) {
  keeper_->set_catalog(catalog);
  engine_->set_catalog(std::move(catalog));
}

void SimNode::join() {
  ClusterConfig config;
  config.id = id_;
  config.name = name_;
  config.shards = world_.database.shards();
  cluster_ = std::make_unique<Cluster>(world_, config, *this);
  Waker* const heartbeat = loops_.emplace_back(std::make_unique<Loop>(*this, cluster_->heartbeat)).get();
  Waker* const owner = loops_.emplace_back(std::make_unique<Loop>(*this, cluster_->owner)).get();
  cluster_->heartbeat.set_wakers(heartbeat, owner);
}

void SimNode::members_changed() {
  if (cluster_) cluster_->heartbeat.request();
}

void SimNode::crash() {
  world_.trace.line(world_.scheduler.now(), name_ + " is gone");
  world_.checker.on_crash(name_);
  runs_.clear();
  loops_.clear();
  if (cluster_) world_.database.members.end_session(cluster_->config.id);
  cluster_.reset();
  engine_.reset();
  keeper_.reset();
  frozen_until_ = {};
}

void SimNode::drain(Duration grace) {
  world_.trace.line(world_.scheduler.now(), name_ + " drains");
  if (cluster_) cluster_->heartbeat.drain();
  keeper_->drain();
  engine_->begin_drain();
  poll_drain(process_, world_.scheduler.now() + grace);
}

void SimNode::poll_drain(std::uint64_t process, MonoTime give_up) {
  if (!is_up() || process_ != process) return;
  if (engine_->is_drained() && world_.checker.is_calm()) world_.checker.on_drained(name_);
  if (engine_->is_drained() || world_.scheduler.now() >= give_up) {
    // It leaves last; that may be lost on the way like everything else.
    const NodeId left = cluster_ ? id_ : 0;
    const bool gives_back = engine_->is_drained() && (world_.checker.is_calm() || world_.random.below(4) > 0);
    crash();
    if (gives_back) world_.database.permits.give_back_all(id_);
    if (left != 0 && (world_.checker.is_calm() || world_.random.below(4) > 0)) world_.database.members.leave(left);
    return;
  }
  world_.scheduler.after(std::chrono::milliseconds(20), [this, process, give_up] { poll_drain(process, give_up); });
}

// Handlers ------------------------------------------------------------------------------------------------------------

void SimNode::begin(const ClaimedJob& job, Handler::Finish finish) {
  world_.checker.on_start(name_, job);
  const Outcome outcome = any_outcome();
  if (world_.random.unit() < habits_.is_at_once) {
    world_.checker.on_answer(job, outcome);
    return finish(outcome);
  }
  const std::uint64_t id = ++last_run_;
  runs_.emplace(id, Run{job, outcome, std::move(finish)});
  world_.scheduler.after(any_run_time(job), [this, id] { answer(id); });
}

Outcome SimNode::any_outcome() {
  if (world_.random.unit() < habits_.is_full) return Outcome::not_started(Duration(world_.random.below(2'000'000)));
  const double chance = world_.random.unit();
  if (chance < habits_.gives_up) return Outcome::dead("gone for good");
  if (chance >= habits_.gives_up + habits_.fails) return Outcome::done();
  if (world_.random.below(4) == 0) return Outcome::retry("busy", Duration(world_.random.below(3'000'000)));
  return Outcome::retry("failed");
}

Duration SimNode::any_run_time(const ClaimedJob& job) {
  const double lease =
      static_cast<double>(std::max<std::int64_t>(2'000, (job.lease_deadline - world_.scheduler.now()).count()));
  const double chance = world_.random.unit();
  if (chance < habits_.hangs) return Duration(static_cast<std::int64_t>(lease * (2 + 20 * world_.random.unit())));
  if (chance < habits_.hangs + habits_.overruns)
    return Duration(static_cast<std::int64_t>(lease * (0.9 + world_.random.unit())));
  const double most = std::min(lease * 0.8, habits_.fails > 0 ? 3e6 : 20e3);
  return Duration(static_cast<std::int64_t>(1'000 * std::pow(most / 1'000, world_.random.unit())));
}

void SimNode::answer(std::uint64_t id) {
  const auto node = runs_.extract(id);
  if (node.empty()) return;  // the process is gone, or it answered already
  Run& run = node.mapped();
  world_.checker.on_answer(run.claimed, run.outcome);
  run.finish(run.outcome);
}

void SimNode::hurry_handlers(Duration time) {
  for (const auto& [id, run] : runs_)
    world_.scheduler.after(Duration(world_.random.below(static_cast<std::uint64_t>(time.count()))),
                           [this, id] { answer(id); });
}

void SimNode::count(Counter what, std::int64_t n) {
  counters_[static_cast<std::size_t>(what)] += n;
  if (n != 0) world_.trace.line(world_.scheduler.now(), name_ + " counts " + std::to_string(n) + ' ' + name_of(what));
}

void SimNode::failed(std::string_view stage, const Error& error) {
  count(Counter::store_errors, 1);
  world_.trace.line(world_.scheduler.now(), name_ + ' ' + std::string(stage) + ": " + error.message);
}

// Bounds --------------------------------------------------------------------------------------------------------------

void SimNode::check_bounds() {
  const EngineShared& shared = engine_->shared();
  const auto expect = [&](std::size_t size, std::size_t most, const char* what) {
    if (size > most)
      world_.checker.fail("I7",
                          name_ + ": " + std::to_string(size) + ' ' + what + ", allowed are " + std::to_string(most));
  };
  const std::size_t running = shared.gate.running();
  expect(shared.known.size(), config_.capacity, "known jobs");
  expect(shared.candidates.size(), shared.candidates.capacity(), "candidates");
  expect(shared.due.size(), config_.capacity, "due jobs");
  expect(shared.expired.size(), shared.expired.capacity(), "expired jobs");
  expect(running, config_.max_running, "claimed jobs");
  expect(shared.claimed.size() + runs_.size() + shared.outcomes.size(), running, "jobs between claim and finish");
  std::map<TypeId, std::size_t> per_type;
  for (const auto& [id, run] : runs_) ++per_type[run.claimed.job.type_id];
  const auto catalog = shared.catalog.get();
  for (const auto& [type, n] : per_type) {
    expect(n, config_.max_running_per_type, "handlers of one type");
    if (const BizType* known = catalog->find(type); known && known->max_running)
      expect(n, static_cast<std::size_t>(*known->max_running), "handlers of a limited type");
  }
}

void SimNode::check_at_rest() {
  const EngineShared& shared = engine_->shared();
  const auto expect_none = [&](std::size_t size, const char* what) {
    if (size > 0) world_.checker.fail("I7", name_ + " is at rest and keeps " + std::to_string(size) + ' ' + what);
  };
  expect_none(shared.gate.running(), "slots of the gate");
  expect_none(shared.known.size(), "known jobs");
  expect_none(shared.due.size(), "due jobs");
  expect_none(shared.claimed.size() + shared.outcomes.size() + shared.candidates.size(), "jobs in queues");
}

}  // namespace tocsin
