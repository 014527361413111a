#include "simulation/relay_life.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "metrics/metrics.h"
#include "simulation/faults.h"
#include "simulation/scheduler.h"
#include "simulation/sim_database.h"
#include "simulation/trace.h"

namespace tocsin {

using namespace std::chrono_literals;

namespace {

constexpr int kRelayShards = 6;
constexpr DatabaseId kRelayDatabases = 3;
constexpr auto kRelayTroubled = 200s;  // then nothing fails any more
constexpr auto kRelayEnd = 420s;

// Thread: owner only.
class RelayLife {
 public:
  RelayLife(std::uint64_t seed, const FakeOutboxBugs& bugs, bool is_printed)
      : random_(seed), scheduler_(seed ^ 0x5eed), trace_(is_printed) {
    faults_.end_at(MonoTime{} + kRelayTroubled);
    for (double FaultRates::*rate :
         {&FaultRates::unavailable, &FaultRates::conflict, &FaultRates::late, &FaultRates::lost, &FaultRates::delay})
      if (chance(0.6)) faults_.rates.*rate = random_.unit() * 0.3;
    for (DatabaseId database_id = 0; database_id < kRelayDatabases; ++database_id) add_database(database_id, bugs);
    std::vector<DatabaseId> database_ids;
    for (Shard shard = 0; shard < kRelayShards; ++shard)
      database_ids.push_back(static_cast<DatabaseId>(shard % kRelayDatabases));
    map_ = {1, std::vector<NodeId>(kRelayShards, 1), database_ids};
    nodes_.resize(2 + random_.below(2));
  }
  ~RelayLife() { scheduler_.kill_all(); }

  RelayLifeReport run() {
    for (Node& node : nodes_) start(node);
    for (int i = 0; i < 3; ++i) scheduler_.spawn([this] { act_as_business(); });
    scheduler_.spawn([this] { act_as_retention(); });
    scheduler_.spawn([this] { trouble_nodes(); });
    scheduler_.run_until(MonoTime{} + kRelayEnd);
    if (report_.failures.empty()) check_at_rest();
    report_.faults = faults_.injected();
    return report_;
  }

 private:
  struct Node {
    std::unique_ptr<Metrics> metrics;
    std::unique_ptr<OutboxRelay> relay;
    std::vector<Scheduler::FiberId> fibers;
  };
  struct Known {
    DatabaseId source;
    bool is_cancelled = false;  // and told so
    int created = 0;            // how often it became a job
    std::optional<std::string> key;
  };

  bool chance(double p) { return random_.unit() < p; }
  Duration up_to(Duration most) {
    return Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most.count()))));
  }
  FakeOutbox& at(DatabaseId database_id) { return outboxes_.at(static_cast<std::size_t>(database_id)); }
  WallTime wall(DatabaseId database_id) const { return clocks_.at(static_cast<std::size_t>(database_id)).now(); }
  void say(const std::string& text) { trace_.line(scheduler_.now(), text); }
  void breaks(const std::string& promise) {
    say(promise);
    report_.failures.push_back(promise);
    scheduler_.stop();
  }

  void add_database(DatabaseId database_id, const FakeOutboxBugs& bugs) {
    clocks_.emplace_back(scheduler_).step(up_to(4s) - 2s);
    FakeDatabase& database = databases_.emplace_back([this, database_id] { return wall(database_id); }, kRelayShards);
    database.on_change = [this](const FakeDatabase::Change& change) {
      const auto known = jobs_.find(change.job.job_id);
      if (known == jobs_.end() || change.kind != FakeDatabase::Change::Kind::created) return;
      if (++known->second.created > 1) breaks("job " + std::to_string(known->first) + " was created twice");
    };
    std::set<Shard> here;
    for (auto shard = static_cast<Shard>(database_id); shard < kRelayShards;
         shard = static_cast<Shard>(shard + kRelayDatabases))
      here.insert(shard);
    outboxes_.emplace_back(database_id, database, here).bugs = bugs;
  }

  // As node/node.cc wires it, with fibers for threads.
  void start(Node& node) {
    node.metrics = std::make_unique<Metrics>(scheduler_);
    std::vector<RelayDatabase> databases;
    for (DatabaseId database_id = 0; database_id < kRelayDatabases; ++database_id)
      databases.push_back({database_id, std::string(1, static_cast<char>('a' + database_id)),
                           [this, database_id] { return fake_relay_end(at(database_id), scheduler_, faults_); }});
    RelayHooks hooks;
    hooks.time_at_least = [this](DatabaseId database_id) -> std::optional<WallTime> { return wall(database_id) - 5ms; };
    hooks.make_types_known = [](DatabaseId, TypeStore&) -> Status { return Unit{}; };
    hooks.hint = [](const Candidate&) {};
    hooks.moved = [] {};
    node.relay = std::make_unique<OutboxRelay>(std::move(databases), scheduler_, *node.metrics, std::move(hooks));
    share_out();
    for (DatabaseId database_id = 0; database_id < kRelayDatabases; ++database_id) {
      OutboxRelay& relay = *node.relay;
      node.fibers.push_back(scheduler_.spawn([this, &relay, database_id] {
        while (true) relay.step_outbox(database_id), scheduler_.sleep(up_to(1s) + 1ms);
      }));
      node.fibers.push_back(scheduler_.spawn([this, &relay, database_id] {
        while (true) relay.step_intake(database_id), scheduler_.sleep(up_to(50ms) + 1ms);
      }));
    }
  }

  void kill(Node& node) {
    for (const auto fiber : std::exchange(node.fibers, {})) scheduler_.kill(fiber);
    node.relay.reset();
    node.metrics.reset();
    ++report_.killed;
  }

  // Who lives has a part of the shards; for a moment two may believe that they own one.
  void share_out() {
    std::size_t turn = random_.below(nodes_.size());
    for (Node& node : nodes_) {
      if (!node.relay) continue;
      std::vector<Shard> mine;
      for (Shard shard = 0; shard < kRelayShards; ++shard)
        if (static_cast<std::size_t>(shard) % nodes_.size() == turn % nodes_.size() || chance(0.1))
          mine.push_back(shard);
      node.relay->set_shards(mine, map_);
      ++turn;
    }
  }

  void trouble_nodes() {
    while (scheduler_.now() < MonoTime{} + kRelayTroubled) {
      scheduler_.sleep(up_to(20s));
      Node& node = nodes_[random_.below(nodes_.size())];
      if (chance(0.7) && node.relay) kill(node);
      scheduler_.sleep(up_to(15s));
      if (!node.relay) start(node);
      share_out();
    }
  }

  // Creates in one database, and cancels there what has not gone yet.
  void act_as_business() {
    int n = 0;
    while (scheduler_.now() < MonoTime{} + kRelayTroubled) {
      scheduler_.sleep(up_to(700ms));
      const auto source = static_cast<DatabaseId>(random_.below(kRelayDatabases));
      if (chance(0.75)) {
        const bool has_key = chance(0.3);
        const std::string biz_id =
            "order " +
            std::to_string(has_key ? random_.below(40) : 1000 * random_.below(1000) + static_cast<std::uint64_t>(++n));
        const auto key = has_key ? std::optional<std::string>("k") : std::nullopt;
        const JobId id = at(source).create(biz_id, up_to(30s), key, wall(source));
        if (at(source).lives_here(shard_of(id))) continue;
        if (jobs_.try_emplace(id, Known{source, false, 0, key}).second) ++report_.jobs;
      } else if (!jobs_.empty()) {
        const auto job = std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(random_.below(jobs_.size())));
        if (!at(job->second.source).cancel(job->first)) continue;
        if (job->second.created > 0) breaks("I3: an entry was cancelled that is a job already");
        job->second.is_cancelled = true;
        ++report_.cancelled;
      }
    }
  }

  // Jobs end, and their history is dropped at once: the relay must remember by itself.
  void act_as_retention() {
    while (true) {
      scheduler_.sleep(up_to(3s));
      for (FakeOutbox& outbox : outboxes_) {
        std::vector<JobId> ended;
        for (const auto& [id, row] : outbox.data().live()) {
          const auto known = jobs_.find(id);
          if (known != jobs_.end() && known->second.is_cancelled) breaks("I3: a cancelled entry became a pending job");
          if (known != jobs_.end() && !known->second.key && chance(0.2)) ended.push_back(id);
        }
        for (const JobId id : ended) outbox.drop(id);
      }
    }
  }

  void check_at_rest() {
    for (const auto& [id, known] : jobs_) {
      if (known.created == 1 || known.key) continue;  // another job may have the key: the entry stands for it
      return breaks("I1: the entry of job " + std::to_string(id) + " became no job");
    }
  }

  Random random_;
  Scheduler scheduler_;
  Trace trace_;
  Faults faults_{scheduler_, random_, trace_};
  std::deque<WallClock> clocks_;
  std::deque<FakeDatabase> databases_;
  std::deque<FakeOutbox> outboxes_;
  ShardMap map_;
  std::deque<Node> nodes_;
  std::map<JobId, Known> jobs_;
  RelayLifeReport report_;
};

}  // namespace

RelayLifeReport run_relay_life(std::uint64_t seed, const FakeOutboxBugs& bugs, bool is_printed) {
  return RelayLife(seed, bugs, is_printed).run();
}

}  // namespace tocsin
