#include "simulation/ending.h"

#include <algorithm>
#include <limits>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// More than any world needs; a stage that never rests reaches it.
constexpr std::uint64_t kMostEvents = 4'000'000;
// Without faults, from the time of a job to its claim. Most of it is for jobs that come together.
constexpr Duration kOnTime = 100ms;
constexpr std::size_t kEnoughSlots = 16;  // of which slow types leave some
// From the death of a node to the first scan of its shards by another.
const Duration kTakeover = ClusterConfig{}.timeout + 2s;
// From the moment that a node reaches a database no more to the first scan of its shards there by another.
const Duration kUnreached = ClusterConfig{}.out_of_reach() + 3s;

bool is_slow(const BizType& type) { return type.name.starts_with(kSlowType); }

// Until so many jobs of this type have started, as far as its rates delay them.
Duration time_of(const BizType& type, int jobs) {
  const double rate = std::min(type.rate_per_s.value_or(1e6), type.catch_up_rate_per_s.value_or(1e6));
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(jobs / rate));
}

}  // namespace

void Ending::run() {
  using Phase = void (Ending::*)();
  constexpr Phase kPhases[] = {&Ending::live_on,           &Ending::calm_down,     &Ending::crowd_out,
                               &Ending::lose_one_database, &Ending::cut_one_off,   &Ending::cut_one_off_elsewhere,
                               &Ending::fail_over_quickly, &Ending::pause_one,     &Ending::limit_all,
                               &Ending::pass_permits_on,   &Ending::hand_over_one, &Ending::hand_over};
  for (const Phase phase : kPhases) {
    (this->*phase)();
    if (!world_.is_sound()) return;
  }
  world_.checker.check_end();
}

// Everything that was left behind must come to its end.
void Ending::live_on() {
  // Rows that landed behind a low-water mark wait for the sweep; all others for a scan. The rest is the time the work
  // itself takes.
  const EngineConfig& config = world_.config;
  world_.checker.faults_ended(config.sweep_interval + 2 * world_.longest_scan_interval() + 5s +
                              (world_.is_shared ? kTakeover : 0s));
  const MonoTime give_up = world_.scheduler.now() + 5min;
  while (world_.databases.live() > 0 && world_.scheduler.now() < give_up && world_.is_sound()) {
    world_.pass(500ms);
    world_.checker.check_overdue();
    if (world_.scheduler.events() > kMostEvents) world_.checker.fail("live", "a stage never rests");
  }
}

// Every shard is scanned by one node, and each node has its part.
void Ending::check_owners(const char* when) {
  if (!world_.is_shared) return;
  std::vector<int> scanned(static_cast<std::size_t>(world_.databases.shards()));
  std::size_t least = scanned.size(), most = 0;
  for (const auto& node : world_.nodes) {
    if (!node->is_up()) continue;
    const auto shards = node->shards();
    least = std::min(least, shards.size()), most = std::max(most, shards.size());
    for (const Shard shard : shards) ++scanned[static_cast<std::size_t>(shard)];
  }
  for (std::size_t shard = 0; shard < scanned.size(); ++shard)
    if (scanned[shard] != 1)
      world_.checker.fail("owner", std::string(when) + ", " + std::to_string(scanned[shard]) + " nodes scan shard " +
                                       std::to_string(shard));
  if (most - least > 1) world_.checker.fail("owner", std::string(when) + ", the shards are not balanced");
}

void Ending::check_at_rest() {
  for (const auto& node : world_.nodes) node->check_at_rest();
}

// Until every node has its part of the shards.
void Ending::settle() {
  if (world_.is_shared) world_.pass(world_.balanced_within());
}

void Ending::calm_down() {
  Callers& callers = *world_.callers;
  const EngineConfig& config = world_.config;
  settle();
  check_owners("without faults");
  const auto& members = world_.databases.control().data.members;
  const auto map = members.map().version;
  world_.checker.calm_begins();
  world_.begin_quiet(0s);
  callers.probe(10, kOnTime, world_.longest_scan_interval());
  for (int i = 0; i < 3; ++i)
    world_.scheduler.after(world_.up_to(4s), [&] {
      callers.commit_late(world_.up_to(config.late_commit_margin / 2), world_.longest_scan_interval() + kOnTime);
    });
  world_.scheduler.after(world_.up_to(4s), [&] {  // behind the low-water mark: the sweep finds it
    callers.commit_late(config.late_commit_margin + world_.up_to(5s),
                        config.sweep_interval + 2 * world_.longest_scan_interval() + kOnTime);
  });
  if (world_.context.has_foreign_writer) {  // behind the floor: only the audit finds it
    const Duration id_delay = config.late_commit_margin + world_.up_to(3s);
    callers.commit_late(id_delay + world_.up_to(1s),
                        config.audit_interval + 2 * world_.longest_scan_interval() + kOnTime, id_delay);
  }
  // Clocks are set by some milliseconds, and nothing is late for it.
  for (SimDatabase& database : world_.databases)
    world_.scheduler.after(world_.up_to(4s), [&] { database.wall.step(world_.up_to(10ms) - 5ms); });
  // And some after a lull, in which the wheel stood still.
  for (int i = 0; i < 5; ++i)
    world_.scheduler.after(20s + i * 300ms, [&] {
      callers.commit_ahead(config.lookahead + world_.longest_scan_interval() + kOnTime, kOnTime);
    });
  // To the end of the last lease too: a scan may have seen it while the job ran.
  world_.pass(28s + config.lookahead + 2s);
  if (!world_.is_sound()) return;
  check_at_rest();
  if (members.map().version != map) world_.checker.fail("owner", "shards move although nobody comes or goes");
}

// Types that have far more due than memory holds and claimers can take: one, many, some whose handlers are slow, or one
// that resumes with a backlog in the midst of it.
std::set<TypeId> Ending::draw_crowd() {
  constexpr int kMany = 20, kSlow = 3;
  std::set<TypeId> crowd{world_.types[0].type_id};
  switch (world_.random.below(4)) {
    case 0:
      break;
    case 1:  // the last of them has nothing due: its turn must come all the same
      for (int i = 0; i < kMany; ++i) crowd.insert(world_.add_type("crowd." + std::to_string(i), "noop", 5s).type_id);
      crowd.erase(world_.types.back().type_id);
      break;
    case 2:
      for (int i = 0; i < kSlow; ++i)
        crowd.insert(world_.add_type(std::string(kSlowType) + std::to_string(i), "sim", 5s).type_id);
      break;
    default:
      BizType& resumed = world_.add_type("resumed", "noop", 5s);
      resumed.paused = true;
      crowd.insert(resumed.type_id);
  }
  world_.publish_types();
  return crowd;
}

void Ending::rush_in(const std::set<TypeId>& crowd) {
  const std::size_t jobs = 4 * world_.config.capacity / crowd.size() + 1;
  for (int wave = 0; wave < 3; ++wave) {
    for (const TypeId type : crowd) {
      const bool runs_long = is_slow(world_.types[static_cast<std::size_t>(type - 1)]);
      const std::size_t n = runs_long ? world_.config.max_running / 2 + 1 : jobs;
      world_.callers->rush_at(1s + wave * 10ms, static_cast<int>(n), type);
    }
  }
  if (BizType& last = world_.types.back(); last.paused) {
    world_.callers->rush(static_cast<int>(jobs), last.type_id);
    world_.pass(900ms);
    last.paused = false;
    world_.publish_types();
  }
}

// Single jobs of other types that will become due in the midst of the crowd, and that a scan reads before it comes.
// Most memory stays free, and of the slots as many as each type needs for the job whose bound is known.
void Ending::create_unheard(const std::set<TypeId>& crowd) {
  const Duration found = world_.config.lookahead + 2 * world_.longest_scan_interval();
  std::size_t fitting = world_.config.capacity / 8;
  for (const BizType& type : world_.types) {
    const bool has_slots = type.is_instant() || (crowd.size() == 1 && world_.config.max_running >= kEnoughSlots);
    if (crowd.contains(type.type_id) || type.is_pull() || !has_slots || fitting == 0) continue;
    world_.callers->create_unheard_at(found + 1004ms, type.type_id);
    --fitting;
  }
  world_.pass(found);
}

// Jobs of types of which others run by then, and of pull types: the checker knows their bounds.
void Ending::create_followers(const std::set<TypeId>& crowd) {
  const bool has_slots = crowd.size() == 1 && world_.config.max_running >= kEnoughSlots;
  std::size_t fitting = world_.config.capacity / 16;
  for (const BizType& type : world_.types) {
    if (crowd.contains(type.type_id) || type.is_instant() || (!type.is_pull() && !has_slots)) continue;
    for (int i = 0; i < 2 && (type.is_pull() || fitting > 0); ++i) {
      world_.callers->create_at((type.is_pull() ? 1004ms : 1016ms) + i * 1ms, type.type_id);
      if (!type.is_pull()) --fitting;
    }
  }
}

// Single jobs of other types that become due in the midst of a crowd start before what was due after them, but for the
// batches that were on their way, two per claimer, and one job of each type of the crowd, in every node.
void Ending::crowd_out() {
  constexpr std::size_t kClaimers = 3;
  const std::set<TypeId> crowd = draw_crowd();
  create_unheard(crowd);
  const bool has_slow = is_slow(world_.types.back());
  const std::size_t others = (2 * world_.config.claim_batch * kClaimers + crowd.size() - 1) * world_.nodes.size();
  // One type alone fills three quarters of the memory, and leaves the rest to jobs that come later, but for those that
  // are there before; many leave less than these small memories have.
  std::size_t fitting = crowd.size() == 1 ? world_.config.capacity / 8 : std::numeric_limits<std::size_t>::max();
  const auto create_others = [&] {
    for (const BizType& type : world_.types) {
      if (crowd.contains(type.type_id) || type.is_pull()) continue;
      if (fitting-- == 0) return;
      if (type.is_limited()) {  // beside no other job it is within its limits: the checker knows its bound
        world_.callers->create_at(1005ms, type.type_id);
        continue;
      }
      if (has_slow && !type.is_instant() && world_.config.max_running < kEnoughSlots) continue;
      world_.checker.expect_before(world_.callers->create_at(1005ms, type.type_id), others);
      if (crowd.size() > 1) world_.checker.expect_before(world_.callers->create_at(1015ms, type.type_id), others);
    }
  };
  if (crowd.size() > 1) create_others();
  create_followers(crowd);
  rush_in(crowd);
  if (crowd.size() == 1) create_others();
  world_.pass(25s);
  if (world_.is_sound() && world_.databases.live() > 0)
    world_.checker.fail("live", std::to_string(world_.databases.live()) + " jobs wait after a crowd");
  check_at_rest();
}

// One of several databases is down for longer than any time-out: jobs of the others fire on time, no shard moves, and
// its own jobs fire when it is back.
void Ending::lose_one_database() {
  if (world_.databases.size() == 1) return;
  SimDatabase& lost = world_.any_database();
  const auto& members = world_.databases.control().data.members;
  const auto map = members.map().version;
  world_.checker.quiet_ends();
  world_.callers->rush(6, {}, lost.id);
  world_.pass(world_.up_to(20ms));
  world_.trace.line(world_.scheduler.now(), lost.name() + " is away");
  lost.faults.set_down_until(world_.scheduler.now() + 16s);
  world_.callers->probe(8, kOnTime, world_.longest_scan_interval(), lost.id);
  world_.pass(17s);
  world_.pass(world_.config.sweep_interval + 5s);
  if (!world_.is_sound()) return;
  if (world_.databases.live() > 0)
    world_.checker.fail("live",
                        std::to_string(world_.databases.live()) + " jobs wait after " + lost.name() + " has come back");
  check_at_rest();
  if (members.map().version != map) world_.checker.fail("owner", "shards move although only a database was away");
  check_owners("after a database was away");
}

// One node alone does not reach the control database: others scan its shards, and all there is fires within a takeover.
// Where it still reaches a database, both scan.
void Ending::cut_one_off() {
  if (!world_.is_shared || world_.nodes.size() == 1) return;
  world_.checker.quiet_ends();
  world_.any_node().cut_off(0, world_.scheduler.now() + 16s);
  world_.pass(kTakeover);
  world_.callers->probe(8, kOnTime, world_.longest_scan_interval());
  world_.pass(20s);
  settle();
  check_owners("after a node was cut off");
  check_at_rest();
}

// One node alone does not reach a database other than the control one: others scan its shards there, all jobs are on
// time again, and when it reaches it again there is nothing to mend.
void Ending::cut_one_off_elsewhere() {
  if (!world_.is_shared || world_.nodes.size() == 1 || world_.databases.size() == 1) return;
  world_.checker.quiet_ends();
  SimNode& node = world_.any_node();
  const auto database_id = static_cast<DatabaseId>(1 + world_.random.below(world_.databases.size() - 1));
  world_.trace.line(world_.scheduler.now(),
                    node.name() + " reaches " + world_.databases.at(database_id).name() + " no more");
  node.cut_off(database_id, world_.scheduler.now() + 30s);
  world_.pass(kUnreached);
  for (const Shard shard : node.shards())
    if (world_.databases.database_of(shard) == database_id)
      world_.checker.fail("owner", node.name() + " has shard " + std::to_string(shard) + ", which it does not reach");
  world_.callers->probe(8, kOnTime, world_.longest_scan_interval());
  world_.pass(35s);
  settle();
  check_owners("after a node did not reach a database");
  check_at_rest();
}

// A standby that lags takes over so quickly that no call fails: jobs long overdue that had just ended are
// pending again, behind every mark, and must run.
void Ending::fail_over_quickly() {
  world_.checker.quiet_ends();
  SimDatabase& database = world_.any_database();
  for (int i = 0; i < 6; ++i) world_.callers->create_overdue(15s, database.id);
  world_.checker.on_standby_lags(database.id);
  const auto standby = database.data.snapshot();
  world_.pass(3s);
  world_.trace.line(world_.scheduler.now(), database.name() + "'s standby takes over in no time");
  world_.checker.on_failover(database.id);
  database.data.restore(standby);
  world_.pass(world_.config.sweep_interval + 4s);
  if (world_.is_sound() && world_.databases.live() > 0)
    world_.checker.fail("live", std::to_string(world_.databases.live()) + " jobs are forgotten after a failover");
  check_at_rest();
  settle();
  check_owners("after a failover");
  world_.begin_quiet(0s);
}

// A permit that the engine of one database returns is taken by the engine of another at once.
void Ending::pass_permits_on() {
  constexpr Duration kAtOnce = 15ms;
  if (world_.databases.size() == 1 || world_.nodes.size() > 1) return;
  BizType& hasty = world_.types[2];
  hasty.max_running = 1;
  world_.publish_types();
  world_.pass(2s);
  for (int i = 0; i < 8 && world_.is_sound(); ++i) {
    SimDatabase& first = world_.any_database();
    SimDatabase& second = world_.databases.at((first.id + 1) % static_cast<DatabaseId>(world_.databases.size()));
    world_.callers->create_now(hasty.type_id, first.id);
    world_.pass(3ms);
    const JobId next = world_.callers->create_now(hasty.type_id, second.id);
    const auto waits = [&] { return second.data.find(next)->status == JobStatus::pending; };
    for (int ms = 0; ms < 2000 && !first.data.live().empty(); ++ms) world_.pass(1ms);
    world_.pass(kAtOnce);
    if (waits()) world_.checker.fail("wake", "job " + std::to_string(next) + " waits although a permit is free");
    world_.pass(3s);
  }
}

// Nothing of a paused type starts or fills the memory, others are on time, and the type continues by itself.
void Ending::pause_one() {
  BizType& type = world_.types[world_.random.below(world_.types.size())];
  // A consumer asks for one type at one node, and stays for a while although there is nothing.
  constexpr int kFew = 8;
  const int jobs = is_slow(type) || type.is_pull() ? kFew : static_cast<int>(world_.config.capacity);
  const Duration takes = 20s + time_of(type, 2 * jobs + 6) + (type.is_pull() ? 40s : 0s);
  type.paused = true;
  // By the clock of each database, and they do not agree.
  WallTime first = world_.databases.control().wall.now(), last = first;
  for (const SimDatabase& database : world_.databases) {
    first = std::min(first, database.wall.now());
    last = std::max(last, database.wall.now());
  }
  type.paused_until = last + 8s;
  world_.callers->rush_at(1500ms, 6, type.type_id);  // in memory when the pause begins
  world_.pass(500ms);
  world_.publish_types();
  world_.pass(500ms);
  world_.callers->rush(jobs, type.type_id);
  world_.callers->rush_at(4s, jobs, type.type_id);
  world_.pass(3s);
  check_at_rest();
  world_.pass(takes + (last - first));
  for (const SimDatabase& database : world_.databases)
    for (const auto& [id, row] : database.data.live())
      if (row.job.type_id == type.type_id) world_.checker.fail("pause", "job " + std::to_string(id) + " still waits");
  type.paused = false;
  type.paused_until.reset();
  world_.publish_types();
}

// Jobs of types that catch up slowly wait for so long.
void Ending::let_wait(Duration time) {
  const auto pause = [&](bool is_paused) {
    for (BizType& type : world_.types)
      if (type.catch_up_rate_per_s && !type.drop_older_than) type.paused = is_paused;
    world_.publish_types();
  };
  pause(true);
  for (const BizType& type : world_.types)
    if (type.paused) world_.callers->rush(60, type.type_id);
  world_.pass(time);
  pause(false);
}

// Many jobs of all types at once; where a rate and an age limit meet, more than can run in time.
void Ending::limit_all() {
  let_wait(20s);
  for (const BizType& type : world_.types) {
    if (!type.is_limited()) continue;
    const double rate = type.rate_per_s.value_or(0);
    const double life = type.drop_older_than ? std::chrono::duration<double>(*type.drop_older_than).count() + 3 : 0;
    world_.callers->rush(std::max(30, static_cast<int>(rate * life)), type.type_id);
  }
  world_.pass(40s);
  auto left = world_.databases.live();
  // Few consumers take longer, but they take some job in every ten seconds.
  for (auto before = left + 1; left > 0 && left < before;) {
    before = left;
    world_.pass(10s);
    left = world_.databases.live();
  }
  if (world_.is_sound() && left > 0)
    world_.checker.fail("live", std::to_string(left) + " jobs of limited types still wait");
  check_at_rest();
}

// One of several leaves in the middle of its work: the others have its shards at once.
void Ending::hand_over_one() {
  if (world_.nodes.size() == 1) return;
  world_.checker.quiet_ends();
  SimNode& leaver = world_.any_node();
  world_.callers->rush(12);
  world_.pass(world_.up_to(2ms));
  leaver.drain(5s);
  world_.pass(1s);
  if (leaver.is_up()) return world_.checker.fail("handover", leaver.name() + " does not come to an end");
  check_owners("one second after a node left");
  world_.callers->rush(12);
  world_.pass(3s);
  leaver.start(world_.catalog);
  settle();
  check_owners("after it came back");
}

// A node leaves in the middle of its work; the next one finds everything.
void Ending::hand_over() {
  world_.checker.quiet_ends();
  for (int i = 0; i < 3; ++i) {
    world_.callers->rush(12);
    world_.pass(world_.up_to(2ms));
    for (const auto& node : world_.nodes) node->drain(5s);
    world_.pass(1s);
    for (const auto& node : world_.nodes) {
      if (node->is_up()) return world_.checker.fail("handover", node->name() + " does not come to an end");
      node->start(world_.catalog);
    }
    world_.pass(4s);
  }
  world_.pass(20s);  // the rates take their time
}

}  // namespace tocsin
