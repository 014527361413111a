#include "simulation/sim_node.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace tocsin {

const char* name_of(Counter counter) {
  constexpr const char* kNames[] = {
      "candidates",     "refused",        "claims_won",    "claims_lost",  "claims_in_doubt", "backlog_claims",
      "finished_done",  "finished_retry", "finished_dead", "given_back",   "set_aside",       "stale_finishes",
      "expired_starts", "buried",         "audit_found",   "dropped_late", "store_errors"};
  static_assert(std::size(kNames) == kCounters);
  return kNames[static_cast<int>(counter)];
}

// Runs one stage, as node/loop_thread does on a thread of its own.
class SimNode::Loop final : public Waker {
 public:
  // `part`: the engine whose bounds are checked after every step; nullptr: none.
  Loop(SimNode& node, Part* part, Stage& stage) : node_(node), part_(part), stage_(stage) {
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
      node_.world_.databases.control().faults.before_step();
      is_woken_ = false;
      const MonoTime next = stage_.step(scheduler.now());
      if (part_) node_.check_bounds(*part_), node_.tell_read(*part_);
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
  Part* const part_;
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
        heartbeat_store(world.databases.control().data, &world.scheduler, &node.parts_.front().wire, 20),
        owner_store(world.databases.control().data, &world.scheduler, &node.parts_.front().wire, 21),
        heartbeat(
            config, heartbeat_store, view, node,
            {[&node](MonoTime now) {
               std::vector<ScannedDatabase> scanned;
               for (const Part& part : node.parts_)
                 scanned.push_back({static_cast<DatabaseId>(scanned.size()), part.engine->shared().scans.age(now)});
               return scanned;
             },
             [&node](MonoTime until) {
               for (const Part& part : node.parts_) part.engine->trust_until(until);
             },
             [this] { return owner.applied(); },
             [&node](bool is_sole_member) { node.parts_.front().engine->set_sole_member(is_sole_member); }}),
        owner(config, owner_store, view, node,
              {[&node](const std::vector<Shard>& mine, const ShardMap& map) { node.set_shards(mine, map); },
               [this] { heartbeat.note_applied(); }, [this] { heartbeat.request(); }}) {}

  const ClusterConfig config;
  FakeMemberStore heartbeat_store, owner_store;
  LatestView view{nullptr};
  Heartbeat heartbeat;
  ShardOwner owner;
};

// The scanner's: notes the rows that may be claimed.
class SimNode::ScannedStore final : public FakeJobStore {
 public:
  ScannedStore(std::vector<Candidate>& read, FakeDatabase& database, const Clock* clock, FaultPoint* faults)
      : FakeJobStore(database, clock, faults), read_(read) {}
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) override {
    auto reply = FakeJobStore::scan(ranges, search, mark);
    if (!reply) return reply;
    for (const auto& rows : reply->rows)
      for (const ScanReply::Row& row : rows)
        if (!row.is_exhausted) read_.push_back(row.candidate);
    return reply;
  }

 private:
  std::vector<Candidate>& read_;
};

SimNode::Part::Part(SimDatabase& its, SimContext& world, int claimers) : database(its), wire(its, world.scheduler) {
  stores.push_back(std::make_unique<ScannedStore>(read, its.data, &world.scheduler, &wire));
  for (int i = 1; i < claimers + 3; ++i)
    stores.push_back(std::make_unique<FakeJobStore>(its.data, &world.scheduler, &wire, i));
}

SimNode::SimNode(SimContext& world, std::string name, EngineConfig config, Ownership ownership, int claimers)
    : world_(world),
      name_(std::move(name)),
      config_(std::move(config)),
      ownership_(ownership),
      handler_(std::make_unique<SimHandler>(*this)),
      parts_([&] {
        std::deque<Part> parts;
        for (SimDatabase& database : world.databases) parts.emplace_back(database, world, claimers);
        return parts;
      }()),
      permit_store_(world.databases.control().data, &world.scheduler, &parts_.front().wire, 22) {}

SimNode::~SimNode() {
  if (is_up()) crash();
}

// As node/node.cc wires it: what a type may start, and the consumers that wait, are of the whole node.
void SimNode::start(std::shared_ptr<const TypeCatalog> catalog) {
  TOCSIN_ASSERT(!is_up());
  ++process_;
  world_.trace.line(world_.scheduler.now(), name_ + " starts");
  id_ = 1 + static_cast<NodeId>(world_.random.below(1'000'000'000));
  flow_ = std::make_shared<FlowControl>();
  polls_ = std::make_shared<PollQueue>(config_.max_polls);
  permit_renewer_ =
      std::make_unique<PermitRenewer>(PermitConfig{id_}, *flow_, permit_store_, *this, [this](TypeId type) {
        Waiting all;
        for (const Part& part : parts_) {
          const Waiting here = part.engine->waiting(type);
          all.fresh += here.fresh, all.late += here.late;
        }
        const auto known_types = parts_.front().engine->shared().catalog.get();
        const BizType* known = known_types->find(type);
        return known && known->is_pull() ? polls_->asked_for(type, all) : all;
      });
  for (Part& part : parts_) start_engine(part);
  permit_renewer_->set_waker(loops_.emplace_back(std::make_unique<Loop>(*this, nullptr, *permit_renewer_)).get());
  set_catalog(std::move(catalog));
  if (ownership_ == Ownership::shared) join();
}

void SimNode::start_engine(Part& part) {
  EngineStores stores{*part.stores[0], {}, *part.stores[1], *part.stores[2]};
  for (std::size_t i = 3; i < part.stores.size(); ++i) stores.claimers.push_back(part.stores[i].get());
  part.functions = std::make_unique<SimFunctions>(world_, *this, part.database, part.wire);
  const auto find_handler = [this](const BizType& type) {
    return type.handler_kind == "sim" || type.starts_in_database() ? handler_.get() : nullptr;
  };
  std::vector<Shard> shards;
  for (Shard shard = 0; ownership_ == Ownership::everything && shard < world_.databases.shards(); ++shard)
    if (world_.databases.database_of(shard) == part.database.id) shards.push_back(shard);
  EngineConfig config = config_;
  config.flow = flow_;
  config.stops_without_lease = part.database.id == 0;
  part.engine = std::make_unique<Engine>(config, shards, stores, find_handler, *this,
                                         static_cast<std::uint64_t>(world_.random.int64()), polls_);
  std::vector<Waker*> wakers;
  for (Stage* stage : part.engine->stages())
    wakers.push_back(loops_.emplace_back(std::make_unique<Loop>(*this, &part, *stage)).get());
  part.engine->set_wakers(wakers);
  part.engine->set_listening(world_.hears_notifications);
  std::vector<Shard> all;
  for (Shard shard = 0; shard < world_.databases.shards(); ++shard)
    if (world_.databases.database_of(shard) == part.database.id) all.push_back(shard);
  part.engine->set_all_shards(std::move(all));
}

void SimNode::set_catalog(std::shared_ptr<const TypeCatalog> catalog) {
  permit_renewer_->set_catalog(catalog);
  for (Part& part : parts_) part.engine->set_catalog(catalog);
}

void SimNode::join() {
  ClusterConfig config;
  config.id = id_;
  config.name = name_;
  config.shards = world_.databases.shards();
  cluster_ = std::make_unique<Cluster>(world_, config, *this);
  Waker* const heartbeat = loops_.emplace_back(std::make_unique<Loop>(*this, nullptr, cluster_->heartbeat)).get();
  Waker* const owner = loops_.emplace_back(std::make_unique<Loop>(*this, nullptr, cluster_->owner)).get();
  cluster_->heartbeat.set_wakers(heartbeat, owner);
}

void SimNode::set_shards(const std::vector<Shard>& mine, const ShardMap& map) {
  for (Part& part : parts_) {
    std::vector<Shard> here;
    for (const Shard shard : mine)
      if (map.database_of(shard) == part.database.id) here.push_back(shard);
    part.engine->set_shards(here);
  }
}

std::vector<Shard> SimNode::shards() const {
  std::vector<Shard> all;
  for (const Part& part : parts_) {
    if (!part.engine) continue;
    const auto here = part.engine->shared().shards.get();
    all.insert(all.end(), here->begin(), here->end());
  }
  std::ranges::sort(all);
  return all;
}

void SimNode::members_changed() {
  if (cluster_ && !parts_.front().wire.is_cut()) cluster_->heartbeat.request();
}

void SimNode::hint(const Candidate& job) {
  Part& part = part_of(job.job_id);
  if (!is_up() || part.wire.is_cut()) return;
  if (!std::ranges::binary_search(*part.engine->shared().shards.get(), shard_of(job.job_id))) return;
  const bool is_taken = part.engine->hint(job);
  if (is_taken) world_.checker.on_hinted(name_, job.job_id);
  world_.trace.line(world_.scheduler.now(),
                    name_ + (is_taken ? " takes" : " refuses") + " the hint of job " + std::to_string(job.job_id));
}

void SimNode::sweep(DatabaseId database_id) {
  Part& part = parts_[static_cast<std::size_t>(database_id)];
  if (is_up() && !part.wire.is_cut()) part.engine->request_sweep();
}

void SimNode::crash() {
  world_.trace.line(world_.scheduler.now(), name_ + " is gone");
  world_.checker.on_crash(name_);
  for (Part& part : parts_) part.runs.clear(), part.read.clear(), part.functions.reset();
  loops_.clear();
  if (cluster_) world_.databases.control().data.members.end_session(cluster_->config.id);
  cluster_.reset();
  for (Part& part : parts_) part.engine.reset();
  permit_renewer_.reset();
  frozen_until_ = {};
}

void SimNode::drain(Duration grace) {
  world_.trace.line(world_.scheduler.now(), name_ + " drains");
  if (cluster_) cluster_->heartbeat.drain();
  permit_renewer_->drain();
  for (Part& part : parts_) part.engine->begin_drain();
  poll_drain(process_, world_.scheduler.now() + grace);
}

bool SimNode::is_drained() const {
  return std::ranges::all_of(parts_, [](const Part& part) { return part.engine->is_drained(); });
}

void SimNode::poll_drain(std::uint64_t process, MonoTime give_up) {
  if (!is_up() || process_ != process) return;
  if (is_drained() && world_.checker.is_calm()) world_.checker.on_drained(name_);
  if (is_drained() || world_.scheduler.now() >= give_up) {
    // It leaves last; that may be lost on the way like everything else.
    FakeDatabase& control = world_.databases.control().data;
    const NodeId left = cluster_ ? id_ : 0;
    const bool gives_back = is_drained() && (world_.checker.is_calm() || world_.random.below(4) > 0);
    if (gives_back) return_permits();
    crash();
    if (left != 0 && (world_.checker.is_calm() || world_.random.below(4) > 0)) control.members.leave(left);
    return;
  }
  world_.scheduler.after(std::chrono::milliseconds(20), [this, process, give_up] { poll_drain(process, give_up); });
}

// Permits of leases that still hold stay.
void SimNode::return_permits() {
  Wire& wire = parts_.front().wire;
  wire.set_direct(true);
  static_cast<void>(permit_renewer_->leave(world_.scheduler.now()));
  wire.set_direct(false);
}

// Consumers -----------------------------------------------------------------------------------------------------------

bool SimNode::lease(Poll poll) {
  return is_up() && !is_draining() && polls_->add(std::make_shared<const Poll>(std::move(poll)));
}

void SimNode::end_lease(const Lease& lease) {
  if (is_up()) flow_->leases().settle({&lease, 1});
}

bool SimNode::admits(const BizType& type) const {
  if (!is_up()) return false;
  const MonoTime now = world_.scheduler.now();
  if (type.max_running && !type.is_instant()) {
    const auto grant = flow_->granted(type.type_id, Limit::running, now);
    const Duration lease = std::max(type.ttr, polls_->longest_ttr(type.type_id));
    if (!grant || grant->n <= static_cast<int>(flow_->used(type.type_id)) || grant->lease < lease) return false;
  }
  return !type.rate_per_s || !flow_->is_paced(type, Pace::fresh, now);
}

void SimNode::extend_lease(TypeId type, const Lease& lease, Duration ttr) {
  if (is_up()) flow_->leases().extend(type, lease, world_.scheduler.now() + ttr);
}

// Handlers ------------------------------------------------------------------------------------------------------------

void SimNode::begin(const ClaimedJob& job, Handler::Finish finish) {
  if (part_of(job.job.job_id).engine->shared().catalog.get()->find(job.job.type_id)->starts_in_database()) {
    const Duration most = std::max<Duration>((job.lease_deadline - world_.scheduler.now()) * 9 / 10, Duration(0));
    const Outcome outcome = any_outcome();
    const Duration wait = world_.random.unit() < habits_.is_at_once ? Duration(0) : std::min(any_run_time(job), most);
    return part_of(job.job.job_id).functions->start(job, outcome, wait, std::move(finish));
  }
  world_.checker.on_start(name_, job);
  const Outcome outcome = any_outcome();
  if (world_.random.unit() < habits_.is_at_once) {
    world_.checker.on_answer(job, outcome);
    return finish(outcome);
  }
  const std::uint64_t id = ++last_run_;
  Part& part = part_of(job.job.job_id);
  part.runs.emplace(id, Run{job, outcome, std::move(finish)});
  check_running_together();
  world_.scheduler.after(any_run_time(job), [this, &part, id] { answer(part, id); });
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
  if (job.job.biz_type.starts_with(kSlowType)) return Duration(500'000 + world_.random.below(1'000'000));
  const double lease =
      static_cast<double>(std::max<std::int64_t>(2'000, (job.lease_deadline - world_.scheduler.now()).count()));
  const double chance = world_.random.unit();
  if (chance < habits_.hangs) return Duration(static_cast<std::int64_t>(lease * (2 + 20 * world_.random.unit())));
  if (chance < habits_.hangs + habits_.overruns)
    return Duration(static_cast<std::int64_t>(lease * (0.9 + world_.random.unit())));
  const double most = std::min(lease * 0.8, habits_.fails > 0 ? 3e6 : 20e3);
  return Duration(static_cast<std::int64_t>(1'000 * std::pow(most / 1'000, world_.random.unit())));
}

void SimNode::answer(Part& part, std::uint64_t id) {
  const auto node = part.runs.extract(id);
  if (node.empty()) return;  // the process is gone, or it answered already
  Run& run = node.mapped();
  world_.checker.on_answer(run.claimed, run.outcome);
  run.finish(run.outcome);
}

void SimNode::hurry_handlers(Duration time) {
  for (Part& part : parts_)
    for (const auto& [id, run] : part.runs)
      world_.scheduler.after(Duration(world_.random.below(static_cast<std::uint64_t>(time.count()))),
                             [this, &part, id = id] { answer(part, id); });
}

void SimNode::count(Counter what, std::int64_t n) {
  counters_[static_cast<std::size_t>(what)] += n;
  if (what == Counter::refused) refused_at_ = world_.scheduler.now();
  if (what == Counter::audit_found && n > 0) check_audit(n);
  if (n != 0) world_.trace.line(world_.scheduler.now(), name_ + " counts " + std::to_string(n) + ' ' + name_of(what));
}

void SimNode::check_audit(std::int64_t found) {
  // Where several nodes own a lane, none hears what another releases.
  const std::size_t unheard = world_.has_rivals ? world_.checker.released_by_others(name_) : 0;
  if (static_cast<std::size_t>(found) > unheard && !world_.has_foreign_writer)
    world_.checker.fail("audit", name_ + ": a row lay before the floor, although every writer took its id first");
}

// Of the rows that a scan has read, those that the engine keeps, and those due now that a backlog covers. Others wait
// for a later scan: memory is full.
void SimNode::tell_read(Part& part) {
  for (const Candidate& job : part.read)
    if (keeps(job.job_id)) world_.checker.on_read(name_, job.job_id);
  part.read.clear();
}

bool SimNode::has_refused_lately() const {
  return refused_at_ && world_.scheduler.now() - *refused_at_ < std::chrono::seconds(5);
}

bool SimNode::keeps(JobId job) const {
  const Part& part = parts_[static_cast<std::size_t>(world_.databases.of(job).id)];
  if (!part.engine) return false;
  const EngineShared& shared = part.engine->shared();
  if (shared.known.contains(job)) return true;
  const auto row = part.database.data.find(job);
  return row && row->fire_at <= part.database.wall.now() && shared.due.has_backlog({shard_of(job), row->type_id});
}

void SimNode::failed(std::string_view stage, const Error& error) {
  count(Counter::store_errors, 1);
  world_.trace.line(world_.scheduler.now(), name_ + ' ' + std::string(stage) + ": " + error.message);
}

// Bounds --------------------------------------------------------------------------------------------------------------

void SimNode::check_bounds(const Part& part) {
  const EngineShared& shared = part.engine->shared();
  const auto expect = [&](std::size_t size, std::size_t most, const char* what) {
    if (size > most)
      world_.checker.fail("I7",
                          name_ + ": " + std::to_string(size) + ' ' + what + ", allowed are " + std::to_string(most));
  };
  const std::size_t running = shared.limiter.running();
  expect(shared.known.size(), config_.capacity, "known jobs");
  expect(shared.candidates.size(), shared.candidates.capacity(), "candidates");
  expect(shared.due.size(), config_.capacity, "due jobs");
  expect(shared.expired.size(), shared.expired.capacity(), "expired jobs");
  expect(running, config_.max_running, "claimed jobs");
  const std::size_t started = part.runs.size() + part.functions->running();
  expect(shared.claimed.size() + started + shared.outcomes.size(), running, "jobs between claim and finish");
  std::map<TypeId, std::size_t> per_type;
  for (const auto& [id, run] : part.runs) ++per_type[run.claimed.job.type_id];
  for (const auto& type : shared.catalog.get()->types)
    per_type[type->type_id] += part.functions->running(type->type_id);
  for (const auto& [type, n] : per_type)
    expect(n, std::max<std::size_t>(1, config_.max_running / 2), "handlers of one type");
}

// Permits are of the whole node, whatever database a job lives in.
void SimNode::check_running_together() {
  std::map<TypeId, int> per_type;
  for (const Part& part : parts_)
    for (const auto& [id, run] : part.runs) ++per_type[run.claimed.job.type_id];
  const auto catalog = parts_.front().engine->shared().catalog.get();
  for (const auto& [type, n] : per_type) {
    const BizType* known = catalog->find(type);
    if (known && known->max_running && n > *known->max_running)
      world_.checker.fail("limit", name_ + " runs " + std::to_string(n) + " jobs of " + known->name);
  }
}

void SimNode::check_at_rest() {
  for (const Part& part : parts_) {
    const EngineShared& shared = part.engine->shared();
    const auto expect_none = [&](std::size_t size, const char* what) {
      if (size > 0)
        world_.checker.fail(
            "I7", name_ + " is at rest and keeps " + std::to_string(size) + ' ' + what + " of " + part.database.name());
    };
    // Of pull types a few may stay until a consumer asks here, although another has taken them elsewhere.
    std::size_t unasked = 0;
    const auto catalog = shared.catalog.get();
    for (const auto& type : catalog->types)
      if (type->is_pull()) unasked += shared.due.waiting(type->type_id).fresh + shared.due.waiting(type->type_id).late;
    expect_none(shared.limiter.running(), "slots of the limiter");
    expect_none(shared.known.size() - std::min(unasked, shared.known.size()), "known jobs");
    expect_none(shared.due.size() - std::min(unasked, shared.due.size()), "due jobs");
    expect_none(shared.claimed.size() + shared.outcomes.size() + shared.candidates.size(), "jobs in queues");
  }
}

}  // namespace tocsin
