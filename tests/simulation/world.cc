#include "simulation/world.h"

#include <algorithm>

#include "simulation/callers.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// More than any world needs; a stage that never rests reaches it.
constexpr std::uint64_t kMostEvents = 3'000'000;
// Without faults, from the time of a job to its claim. Most of it is room for jobs that come together.
constexpr Duration kOnTime = 100ms;

// The wall clock of the database host: runs a little fast or slow, and is set now and then.
class WallClock {
 public:
  explicit WallClock(const Scheduler& scheduler) : scheduler_(scheduler) {}
  WallTime now() const {
    const Duration passed = scheduler_.now() - since_;
    return at_ + passed + Duration(static_cast<std::int64_t>(static_cast<double>(passed.count()) * drift_));
  }
  void step(Duration by) {
    at_ = now() + by;
    since_ = scheduler_.now();
  }
  void set_drift(double drift) {
    step(Duration(0));
    drift_ = drift;
  }

 private:
  const Scheduler& scheduler_;
  MonoTime since_{};
  WallTime at_{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  double drift_ = 0;
};

// From the death of a node to the first scan of its shards by another; and until all that stay have their part.
constexpr Duration kTakeover = ClusterConfig{}.timeout + 2s;
constexpr Duration kBalanced = 2 * ClusterConfig{}.timeout + 2s;

class World {
 public:
  World(std::uint64_t seed, const WorldOptions& options);
  ~World() { scheduler_.kill_all(); }  // before what they stand on goes
  WorldReport run();

 private:
  Duration up_to(Duration most) { return Duration(random_.below(static_cast<std::uint64_t>(most.count()) + 1)); }
  bool chance(double p) { return random_.unit() < p; }

  void draw_config();
  void draw_types();
  void draw_faults();
  void boot(SimNode& node) {
    if (chance(slow_starts_)) {
      faults_.hold_scans_until(scheduler_.now() + up_to(15s));
      // More hints than fit, before the node knows the time.
      if (chance(0.2)) scheduler_.after(up_to(1s), [this] { callers_->rush(static_cast<int>(2 * config_.capacity)); });
    }
    node.start(catalog_);
  }
  void plan_trouble();
  void trouble();
  void stop_node(SimNode& node);
  void outage(Duration length);
  void crash_database();
  void crash_after_claim();
  void step_clock();
  void lock_some_row();
  void toggle_pause();
  void publish_catalog();
  void end_faults();
  void live_on();
  void calm_down();
  void check_owners(const char* when);
  void pause_one();
  void limit_all();
  void hand_over_one();
  void hand_over();

  Random random_;
  Scheduler scheduler_;
  Trace trace_;
  WallClock wall_{scheduler_};
  FakeDatabase database_;
  Faults faults_{scheduler_, random_, trace_};
  Checker checker_{scheduler_, trace_, database_, faults_};
  SimContext context_{scheduler_, random_, trace_, database_, faults_, checker_};
  EngineConfig config_;
  std::vector<BizType> types_;
  std::shared_ptr<const TypeCatalog> catalog_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  bool is_shared_ = false;
  std::unique_ptr<Callers> callers_;
  MonoTime faults_end_{};
  double crashes_ = 0, clock_steps_ = 0, outages_ = 0, locks_ = 0, pauses_ = 0, freezes_ = 0,
         slow_starts_ = 0;  // chances
  bool is_crash_armed_ = false;
};

World::World(std::uint64_t seed, const WorldOptions& options)
    : random_(seed),
      scheduler_(seed ^ 0x5eed),
      trace_(options.is_printed),
      database_([this] { return wall_.now(); }, 4) {
  database_.bugs = options.bugs;
  database_.on_change = [this](const FakeDatabase::Change& change) {
    checker_.on_change(change);
    if (is_crash_armed_ && change.kind == FakeDatabase::Change::Kind::claimed) crash_after_claim();
  };
  draw_config();
  draw_types();
  draw_faults();
  const int n = 1 + static_cast<int>(random_.below(3));
  is_shared_ = chance(0.7);  // the others all believe that they own every shard
  database_.members.on_notify = [this] {
    for (const auto& node : nodes_)
      if (checker_.is_calm() || !chance(0.1)) node->members_changed();
  };
  std::vector<SimNode*> nodes;
  for (int i = 0; i < n; ++i) {
    config_.node = "node-" + std::to_string(i);
    nodes_.push_back(std::make_unique<SimNode>(context_, config_.node, config_,
                                               is_shared_ ? Ownership::shared : Ownership::everything,
                                               1 + static_cast<int>(random_.below(2))));
    nodes.push_back(nodes_.back().get());
  }
  std::vector<TypeId> ids, prompt;
  for (const BizType& type : types_) {
    ids.push_back(type.type_id);
    if (!type.is_limited()) prompt.push_back(type.type_id);
  }
  callers_ = std::make_unique<Callers>(context_, nodes, ids, prompt, config_.lookahead);
}

// Small, so that every bound is reached.
void World::draw_config() {
  config_.sweep_interval = 8s;
  config_.late_commit_margin = 2s;
  config_.capacity = 16 + random_.below(48);
  config_.window_page = 2 + random_.below(12);
  config_.overdue_page = 2 + random_.below(8);
  config_.claim_batch = 1 + random_.below(10);
  config_.crowd = 1 + random_.below(6);
  config_.finish_batch = 1 + random_.below(10);
  config_.max_running = 4 + random_.below(16);
  config_.max_running_per_type = std::max<std::size_t>(2, config_.max_running / 2);
}

void World::draw_types() {
  const auto add = [&](const std::string& name, const std::string& kind, Duration ttr) -> BizType& {
    BizType& type = types_.emplace_back();
    type.type_id = static_cast<TypeId>(types_.size());
    type.name = name;
    type.handler_kind = kind;
    type.ttr = ttr;
    type.backoff = {Duration(50'000 + random_.below(1'000'000)), 2, 4s, 0.2, {}};
    return type;
  };
  add("instant", "noop", 5s);
  add("steady", "sim", 2s + up_to(20s));
  add("hasty", "sim", 30ms + up_to(800ms)).max_running = 1 + static_cast<int>(random_.below(4));
  if (chance(0.5)) add("second.instant", "noop", 5s);
  if (chance(0.5))
    add("paced", chance(0.5) ? "noop" : "sim", 5s).rate_per_s = 8 + static_cast<double>(random_.below(12));
  if (chance(0.5)) {
    BizType& catching_up = add("catching.up", "noop", 5s);
    catching_up.catch_up_rate_per_s = 8 + static_cast<double>(random_.below(12));
    if (chance(0.5)) catching_up.drop_older_than = 15s + up_to(20s);
  }
  if (chance(0.5)) add("perishable", chance(0.5) ? "noop" : "sim", 2s).drop_older_than = 2s + up_to(10s);
  database_.permits.total_of = [this](TypeId id, Limit limit) {
    return permits_of(types_[static_cast<std::size_t>(id - 1)], limit);
  };
  publish_catalog();
}

void World::publish_catalog() {
  catalog_ = std::make_shared<const TypeCatalog>(types_);
  for (const auto& node : nodes_)
    if (node->is_up()) node->set_catalog(catalog_);
  checker_.on_types(types_, PermitConfig{}.ttl + 6s);
}

void World::draw_faults() {
  const auto rate = [&](double most) { return chance(0.5) ? 0 : most * random_.unit(); };
  faults_.rates = {rate(0.1), rate(0.05), rate(0.05), rate(0.1), rate(0.05), rate(0.02)};
  crashes_ = rate(0.4), clock_steps_ = rate(0.4), outages_ = rate(0.3), locks_ = rate(1), pauses_ = rate(0.3),
  freezes_ = rate(0.3), slow_starts_ = rate(1);
  if (chance(0.5)) wall_.set_drift((random_.unit() - 0.5) * 1.8e-4);  // +-90 ppm
  faults_end_ = MonoTime(20s + up_to(40s));
}

// Troubles ------------------------------------------------------------------------------------------------------------

void World::plan_trouble() {
  scheduler_.after(up_to(4s), [this] {
    if (scheduler_.now() >= faults_end_) return;
    trouble();
    plan_trouble();
  });
}

void World::trouble() {
  SimNode& node = *nodes_[random_.below(nodes_.size())];
  if (chance(crashes_)) stop_node(node);
  if (chance(freezes_) && node.is_up())
    node.freeze_until(std::min<MonoTime>(faults_end_, scheduler_.now() + up_to(10s)));
  if (chance(clock_steps_)) step_clock();
  if (chance(locks_)) lock_some_row();
  if (chance(pauses_)) toggle_pause();
  if (chance(outages_)) {
    const auto dice = random_.below(4);
    if (dice < 2) {
      outage(up_to(6s));
    } else if (dice == 2) {
      crash_database();
    } else {
      is_crash_armed_ = true;
    }
  }
}

void World::outage(Duration length) {
  trace_.line(scheduler_.now(), "the database is down");
  faults_.set_down(true);
  scheduler_.after(length, [this] { faults_.set_down(false); });
}

void World::crash_database() {
  if (scheduler_.now() >= faults_end_) return;
  trace_.line(scheduler_.now(), "the database crashes");
  // Whose claims are lost could be cancelled now, however far their first claimers have come.
  callers_->cancel_later(database_.lose_unflushed_claims(wall_.now()), config_.start_window + up_to(8s));
  outage(config_.start_window + up_to(2s));
}

// The worst moment: the answer to the claim has arrived, its handler has not begun, and the node stands still.
void World::crash_after_claim() {
  is_crash_armed_ = false;
  for (const auto& node : nodes_) {
    if (node->is_up()) node->freeze_until(std::min<MonoTime>(faults_end_, scheduler_.now() + up_to(10s)));
  }
  scheduler_.after(1ms, [this] { crash_database(); });
}

void World::stop_node(SimNode& node) {
  if (!node.is_up()) return;
  if (chance(0.3)) {
    node.drain(up_to(8s));
  } else {
    node.crash();
  }
  scheduler_.after(up_to(8s), [this, &node] {
    if (!node.is_up() && scheduler_.now() < faults_end_) boot(node);
  });
}

void World::step_clock() {
  const Duration size = chance(0.5) ? up_to(50ms) : up_to(15s);
  const Duration by = chance(0.5) ? size : -size;
  trace_.line(scheduler_.now(), "the database's clock is set by " + std::to_string(by.count()) + " us");
  wall_.step(by);
  checker_.on_clock_step();
}

void World::lock_some_row() {
  if (database_.live().empty()) return;
  auto row = database_.live().begin();
  std::advance(row, random_.below(database_.live().size()));
  const JobId job = row->first;
  trace_.line(scheduler_.now(), "somebody locks job " + std::to_string(job));
  database_.lock(job);
  scheduler_.at(std::min<MonoTime>(faults_end_, scheduler_.now() + up_to(8s)), [this, job] { database_.unlock(job); });
}

void World::toggle_pause() {
  BizType& type = types_[random_.below(types_.size())];
  type.paused = !type.paused;
  trace_.line(scheduler_.now(), type.name + (type.paused ? " is paused" : " goes on"));
  publish_catalog();
}

// Phases --------------------------------------------------------------------------------------------------------------

void World::end_faults() {
  trace_.line(scheduler_.now(), "the faults end");
  faults_.set_down(false);
  for (BizType& type : types_) type.paused = false;
  publish_catalog();
  constexpr HandlerHabits kGood{0, 0, 0, 0.1, 0, 0};
  for (const auto& node : nodes_) {
    if (node->is_draining()) node->crash();
    if (!node->is_up()) boot(*node);
    node->set_habits(kGood);
    node->hurry_handlers(3s);
  }
}

// Everything that was left behind must come to its end.
void World::live_on() {
  // Rows that landed behind a low-water mark wait for the sweep; all others for a scan. The rest is the time the work
  // itself takes.
  checker_.faults_ended(config_.sweep_interval + 2 * config_.scan_interval + 5s + (is_shared_ ? kTakeover : 0s));
  const MonoTime give_up = scheduler_.now() + 5min;
  while (!database_.live().empty() && scheduler_.now() < give_up && checker_.failures().empty()) {
    scheduler_.run_until(scheduler_.now() + 500ms);
    checker_.check_overdue();
    if (scheduler_.events() > kMostEvents) checker_.fail("live", "a stage never rests");
  }
}

// Every shard is scanned by one node, and each node has its part.
void World::check_owners(const char* when) {
  if (!is_shared_) return;
  std::vector<int> scanned(static_cast<std::size_t>(database_.shards()));
  std::size_t least = scanned.size(), most = 0;
  for (const auto& node : nodes_) {
    if (!node->is_up()) continue;
    const auto shards = node->shards();
    least = std::min(least, shards.size()), most = std::max(most, shards.size());
    for (const Shard shard : shards) ++scanned[static_cast<std::size_t>(shard)];
  }
  for (std::size_t shard = 0; shard < scanned.size(); ++shard)
    if (scanned[shard] != 1)
      checker_.fail("owner", std::string(when) + ", " + std::to_string(scanned[shard]) + " nodes scan shard " +
                                 std::to_string(shard));
  if (most - least > 1) checker_.fail("owner", std::string(when) + ", the shards are not balanced");
}

void World::calm_down() {
  if (is_shared_) scheduler_.run_until(scheduler_.now() + kBalanced);
  check_owners("without faults");
  const auto map = database_.members.map().version;
  checker_.calm_begins();
  callers_->probe(10, kOnTime, config_.scan_interval);
  for (int i = 0; i < 3; ++i)
    scheduler_.after(up_to(4s), [this] {
      callers_->commit_late(up_to(config_.late_commit_margin / 2), config_.scan_interval + kOnTime);
    });
  scheduler_.after(up_to(4s), [this] {  // behind the low-water mark: the sweep finds it
    callers_->commit_late(config_.late_commit_margin + up_to(5s),
                          config_.sweep_interval + 2 * config_.scan_interval + kOnTime);
  });
  // And some after a lull, in which the wheel stood still.
  for (int i = 0; i < 5; ++i)
    scheduler_.after(20s + i * 300ms,
                     [this] { callers_->commit_ahead(config_.lookahead + config_.scan_interval + kOnTime, kOnTime); });
  // To the end of the last lease too: a scan may have seen it while the job ran.
  scheduler_.run_until(scheduler_.now() + 28s + config_.lookahead + 2s);
  if (!checker_.failures().empty()) return;
  for (const auto& node : nodes_) node->check_at_rest();
  if (database_.members.map().version != map) checker_.fail("owner", "shards move although nobody comes or goes");
  pause_one();
  if (!checker_.failures().empty()) return;
  limit_all();
  if (!checker_.failures().empty()) return;
  if (nodes_.size() > 1) hand_over_one();
  hand_over();
}

// Nothing of a paused type starts or fills the memory, others are on time, and it goes on by itself.
void World::pause_one() {
  BizType& type = types_[0];
  type.paused = true;
  type.paused_until = wall_.now() + 8s;
  publish_catalog();
  scheduler_.run_until(scheduler_.now() + 500ms);
  callers_->rush(static_cast<int>(2 * config_.capacity), type.type_id);
  scheduler_.run_until(scheduler_.now() + 3s);
  for (const auto& node : nodes_) node->check_at_rest();
  scheduler_.run_until(scheduler_.now() + 20s);
  for (const auto& [id, row] : database_.live())
    if (row.job.type_id == type.type_id) checker_.fail("pause", "job " + std::to_string(id) + " still waits");
  type.paused = false;
  type.paused_until.reset();
  publish_catalog();
}

// Many jobs of all types at once, at one node after the other.
void World::limit_all() {
  for (const BizType& type : types_)
    if (type.is_limited()) callers_->rush(30, type.type_id);
  scheduler_.run_until(scheduler_.now() + 40s);
  if (checker_.failures().empty() && !database_.live().empty())
    checker_.fail("live", std::to_string(database_.live().size()) + " jobs of limited types still wait");
  for (const auto& node : nodes_) node->check_at_rest();
}

// One of several leaves in the middle of its work: the others have its shards at once.
void World::hand_over_one() {
  SimNode& leaver = *nodes_[random_.below(nodes_.size())];
  callers_->rush(12);
  scheduler_.run_until(scheduler_.now() + up_to(2ms));
  leaver.drain(5s);
  scheduler_.run_until(scheduler_.now() + 1s);
  if (leaver.is_up()) return checker_.fail("handover", leaver.name() + " does not come to an end");
  check_owners("one second after a node left");
  callers_->rush(12);
  scheduler_.run_until(scheduler_.now() + 3s);
  boot(leaver);
  if (is_shared_) scheduler_.run_until(scheduler_.now() + kBalanced);
  check_owners("after it came back");
}

// A node leaves in the middle of its work; the next one finds everything.
void World::hand_over() {
  for (int i = 0; i < 3; ++i) {
    callers_->rush(12);
    scheduler_.run_until(scheduler_.now() + up_to(2ms));
    for (const auto& node : nodes_) node->drain(5s);
    scheduler_.run_until(scheduler_.now() + 1s);
    for (const auto& node : nodes_) {
      if (node->is_up()) return checker_.fail("handover", node->name() + " does not come to an end");
      boot(*node);
    }
    scheduler_.run_until(scheduler_.now() + 4s);
  }
  scheduler_.run_until(scheduler_.now() + 20s);  // the rates take their time
  if (checker_.failures().empty()) checker_.check_end();
}

WorldReport World::run() {
  faults_.end_at(faults_end_);
  for (const auto& node : nodes_) boot(*node);
  callers_->begin(2 + static_cast<int>(random_.below(4)), faults_end_ - 1s);
  plan_trouble();
  scheduler_.run_until(faults_end_);
  if (checker_.failures().empty()) end_faults();
  if (checker_.failures().empty()) live_on();
  if (checker_.failures().empty()) calm_down();

  WorldReport report{checker_.failures(),
                     trace_.hash(),
                     scheduler_.events(),
                     faults_.injected(),
                     checker_.created(),
                     checker_.starts(),
                     {}};
  for (const auto& node : nodes_)
    for (std::size_t i = 0; i < report.counters.size(); ++i) report.counters[i] += node->counters()[i];
  return report;
}

}  // namespace

WorldReport run_world(std::uint64_t seed, const WorldOptions& options) { return World(seed, options).run(); }

}  // namespace tocsin
