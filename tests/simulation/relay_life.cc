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
    if (chance(0.5)) scheduler_.spawn([this] { trouble_outboxes(); });
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
    std::string biz_id;
    std::optional<std::string> key;
    bool is_cancelled = false;           // and told so
    std::optional<WallTime> wanted;      // the last deadline that a caller was told it has
    int created = 0;                     // how often it became a job
    std::optional<WallTime> ended;       // the deadline of the job that ran
    bool is_lost = false;                // a failover lost what a relay did with the entry, so it may be changed again
    std::optional<WallTime> changed_at;  // the entry's last change that its outbox has
    bool is_change_lost = false;         // a failover lost a change that the job may have
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

  // Failovers of databases lose the last claims, deletions and changes of entries, and each server has its own clock.
  void trouble_outboxes() {
    while (scheduler_.now() < MonoTime{} + kRelayTroubled) {
      scheduler_.sleep(up_to(4s));
      const auto database_id = static_cast<DatabaseId>(random_.below(kRelayDatabases));
      FakeOutbox& outbox = at(database_id);
      outbox.stop_standby();
      scheduler_.sleep(up_to(2s));
      clocks_.at(static_cast<std::size_t>(database_id)).step(up_to(10s) - 5s);
      for (const OutboxEntry& entry : outbox.fail_over()) {
        say("a failover gives back the entry of job " + std::to_string(entry.job_id));
        Known& known = jobs_.at(entry.job_id);
        known.is_lost = true;
        ++report_.lost;
        if (entry.changed_at != known.changed_at) {
          // The outbox has lost changes that it had acknowledged. Only the job may still have them.
          known.is_cancelled = false;
          known.wanted.reset();
          known.changed_at = entry.changed_at;
          known.is_change_lost = true;
        }
        if (chance(0.5)) change(*jobs_.find(entry.job_id));
      }
    }
  }

  // Creates in one database, and changes there what has not gone yet; or changes it where it has become a job.
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
        const auto [known, is_new] =
            jobs_.try_emplace(id, Known{source, biz_id, key, false, {}, 0, {}, false, {}, false});
        if (is_new) ++report_.jobs;
        if (is_new && chance(0.5)) change(*known);
      } else if (!jobs_.empty()) {
        // One of the last: others have gone long ago.
        const std::size_t last = std::min<std::size_t>(jobs_.size(), chance(0.5) ? 20 : jobs_.size());
        change(*std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(jobs_.size() - 1 - random_.below(last))));
      }
    }
  }

  void change(std::pair<const JobId, Known>& job) {
    auto& [id, known] = job;
    if (known.is_cancelled) return;
    FakeOutbox& source = at(known.source);
    const WallTime now = wall(known.source), wanted = now + up_to(60s);
    if (chance(0.5)) {
      if (!source.cancel(id, now)) return;
      known.is_cancelled = true;
      known.changed_at = now;
      if (known.key) cancelled_keys_.insert(known.biz_id);
      ++report_.cancelled;
    } else if (source.reschedule(id, wanted, now)) {
      known.wanted = wanted;
      known.changed_at = now;
      ++report_.rescheduled;
    } else {
      FakeDatabase& there = at(map_.database_of(shard_of(id))).data();
      if (known.key || known.is_lost || !there.live().contains(id)) return;
      if (there.reschedule(id, {wanted, {}}, there.now())) known.wanted = wanted;
      return;
    }
    say("job " + std::to_string(id) + " was " + (known.is_cancelled ? "cancelled" : "rescheduled"));
    if (known.created > 0 && !known.is_lost) breaks("I3: an entry was changed that is a job already");
  }

  // Jobs end, and their history is dropped at once: the relay must remember by itself.
  void act_as_retention() {
    while (true) {
      scheduler_.sleep(up_to(3s));
      check_keys();
      for (FakeOutbox& outbox : outboxes_) {
        std::vector<JobId> ended;
        for (const auto& [id, row] : outbox.data().live()) {
          if (row.job.idempotency_key && cancelled_keys_.contains(row.job.biz_id))
            breaks("I3: a job is pending that was cancelled by the id of another entry of its key");
          const auto known = jobs_.find(id);
          if (known == jobs_.end()) continue;
          if (known->second.is_cancelled && !known->second.is_lost)
            breaks("I3: a cancelled entry became a pending job");
          if (known->second.key || !chance(0.2)) continue;
          known->second.ended = row.job.action_time;
          ended.push_back(id);
        }
        for (const JobId id : ended) outbox.drop(id);
      }
    }
  }

  // The job that has the key of an entry: it, or the one that it stands for. Such jobs are never dropped.
  bool has_job(JobId id, const Known& known) {
    return at(map_.database_of(shard_of(id))).data().job_with_key(known.biz_id, 1, known.key).has_value();
  }

  // At once: the next entry of the key would hide that this one was dropped.
  void check_keys() {
    for (const auto& [id, known] : jobs_)
      if (known.key && !at(known.source).gone({id}).empty() && !has_job(id, known))
        return breaks("I1: the entry of job " + std::to_string(id) + " is gone, and no job has its key");
  }

  void check_at_rest() {
    for (const auto& [id, known] : jobs_) {
      if (known.key) {
        if (!has_job(id, known)) return breaks("I1: no job has the key of job " + std::to_string(id));
        continue;
      }
      const std::string job = "job " + std::to_string(id);
      if (known.created != 1) return breaks("I1: the entry of " + job + " became no job");
      const auto& live = at(map_.database_of(shard_of(id))).data().live();
      const auto row = live.find(id);
      const bool is_told = !at(known.source).error_of(id).empty();  // that the change came too late
      if (known.is_cancelled && (row != live.end() || (known.ended && !is_told)))
        return breaks("I3: " + job + " was cancelled, and is pending or ran");
      if (known.is_cancelled || !known.wanted) continue;
      const bool was_cancelled = row == live.end() && !known.ended;  // by a change that its outbox has lost
      if (was_cancelled && !(known.is_change_lost && is_told)) return breaks("I3: " + job + " is gone");
      if (was_cancelled) continue;
      if (known.ended ? *known.ended != *known.wanted && !is_told : row->second.job.action_time != *known.wanted)
        return breaks(job + " has another deadline than its caller was told");
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
  std::set<std::string> cancelled_keys_;  // biz_ids of cancelled entries with a key
  RelayLifeReport report_;
};

}  // namespace

RelayLifeReport run_relay_life(std::uint64_t seed, const FakeOutboxBugs& bugs, bool is_printed) {
  return RelayLife(seed, bugs, is_printed).run();
}

}  // namespace tocsin
