#include "simulation/move_life.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "multidb/move_watch.h"
#include "simulation/faults.h"
#include "simulation/scheduler.h"
#include "simulation/trace.h"
#include "support/fake_moves.h"
#include "support/fake_transaction.h"

namespace tocsin {

using namespace std::chrono_literals;
using ChangeKind = FakeDatabase::Change::Kind;

namespace {

constexpr int kMoveShards = 4;
constexpr DatabaseId kMoveDatabases = 3;
constexpr auto kTroubled = 150s;  // then nothing fails any more
constexpr auto kMoveEnd = 600s;

class FiberClock final : public PacingClock {
 public:
  explicit FiberClock(Scheduler& scheduler) : scheduler_(scheduler) {}
  MonoTime now() const override { return scheduler_.now(); }
  void sleep(Duration time) override { scheduler_.sleep(time); }

 private:
  Scheduler& scheduler_;
};

// Thread: owner only.
class MoveLife {
 public:
  MoveLife(std::uint64_t seed, bool is_printed) : random_(seed), scheduler_(seed ^ 0x5eed), trace_(is_printed) {
    faults_.end_at(scheduler_.now() + kTroubled);
    const double most = 0.1;
    for (double FaultRates::*rate :
         {&FaultRates::unavailable, &FaultRates::conflict, &FaultRates::late, &FaultRates::lost, &FaultRates::delay})
      if (chance(0.6)) faults_.rates.*rate = random_.unit() * most;
    for (DatabaseId database_id = 0; database_id < kMoveDatabases; ++database_id) add_database(database_id);
    std::vector<DatabaseId> database_ids;
    for (Shard shard = 0; shard < kMoveShards; ++shard) {
      database_ids.push_back(static_cast<DatabaseId>(shard % kMoveDatabases));
      at(database_ids.back()).settle_in(shard);
    }
    control().data().members.set_database_ids(database_ids);
    map_ = control().data().members.map();
    control().nodes_behind = [this](std::int64_t version) {
      return map_.version < version ? std::vector<std::string>{"node"} : std::vector<std::string>();
    };
  }
  ~MoveLife() { scheduler_.kill_all(); }

  MoveLifeReport run() {
    for (int i = 0; i < 2; ++i) scheduler_.spawn([this] { act_as_business(); });
    scheduler_.spawn([this] { act_as_sql_caller(); });
    scheduler_.spawn([this] { act_as_node(); });
    scheduler_.spawn([this] { read_map(); });
    for (FakeMoves& database : moves_) scheduler_.spawn([this, &database] { replicate(database); });
    scheduler_.spawn([this] { act_as_operator(); });
    if (chance(0.3)) scheduler_.spawn([this] { act_as_operator(); });
    scheduler_.run_until(MonoTime{} + kMoveEnd);
    if (report_.failures.empty()) check_at_rest();
    report_.faults = faults_.injected();
    return report_;
  }

 private:
  struct Known {  // of an acknowledged job
    JobStatus status = JobStatus::pending;
    std::optional<WallTime> lease_ends;
  };

  bool chance(double p) { return random_.unit() < p; }
  Duration up_to(Duration most) {
    return Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most.count()))));
  }
  FakeMoves& at(DatabaseId database_id) { return moves_.at(static_cast<std::size_t>(database_id)); }
  FakeMoves& control() { return at(0); }
  WallTime wall() const {
    return WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)) + scheduler_.now().time_since_epoch();
  }
  bool is_over() const { return !report_.failures.empty() || scheduler_.now() >= MonoTime{} + kMoveEnd - 60s; }
  void say(const std::string& text) { trace_.line(scheduler_.now(), text); }
  void breaks(const std::string& promise) {
    say(promise);
    report_.failures.push_back(promise);
    scheduler_.stop();
  }

  void add_database(DatabaseId database_id) {
    FakeDatabase& database = databases_.emplace_back([this] { return wall(); }, kMoveShards);
    database.begin_ids_at(database_id * 1'000'000);
    moves_.emplace_back(database, moves_).on_change = [this, database_id](const FakeDatabase::Change& change) {
      check(database_id, change);
    };
  }

  // What every change of a job must respect.
  void check(DatabaseId database_id, const FakeDatabase::Change& change) {
    const JobId id = change.job.job_id;
    if (control().data().members.map().database_of(shard_of(id)) != database_id)
      breaks("owner: job " + std::to_string(id) + " changed where its shard does not live");
    Known& known = jobs_[id];
    switch (change.kind) {
      case ChangeKind::created:
        ++report_.jobs;
        known = {};
        return;
      case ChangeKind::claimed:
        if (is_final(known.status)) breaks("job " + std::to_string(id) + " was claimed after its end");
        if (known.lease_ends && *known.lease_ends > wall()) breaks("job " + std::to_string(id) + " is live twice");
        known = {JobStatus::running, change.job.fire_at};
        return;
      case ChangeKind::retried:
        known = {};
        return;
      default:
        if (is_final(known.status)) breaks("job " + std::to_string(id) + " ended twice");
        known = {change.job.status, {}};
    }
  }

  // Creates and cancels, through a map that may be old, as requests do; what is not answered is tried again.
  void act_as_business() {
    int n = 0;
    while (!is_over()) {
      scheduler_.sleep(up_to(400ms));
      if (chance(0.6)) {
        NewJob job;
        job.biz_id = "order " + std::to_string(random_.below(1000)) + std::to_string(++n);
        job.type_id = 1;
        job.when.in = up_to(20s);
        static_cast<void>(at(map_.database_of(shard_of(job.biz_id, kMoveShards)))
                              .data()
                              .create({job}, CreateMode::all_or_nothing, wall()));
      } else if (!jobs_.empty()) {
        auto job =
            jobs_.lower_bound(static_cast<JobId>(random_.below(static_cast<std::uint64_t>(jobs_.rbegin()->first)) + 1));
        const JobId id = job->first;
        const bool was_pending = job->second.status == JobStatus::pending;
        const auto reply = at(map_.database_of(shard_of(id))).data().cancel({id}, wall());
        if (!reply) continue;
        if (reply->front().kind == CancelReply::Kind::not_found)
          breaks("a cancel did not find job " + std::to_string(id));
        if (reply->front().kind == CancelReply::Kind::finished && was_pending)
          breaks("a cancel found job " + std::to_string(id) + " finished, which was pending");
      }
    }
  }

  // Transactions of a business that stay open after their create: a shard is frozen, thawed or opened before or after
  // them, never meanwhile.
  void act_as_sql_caller() {
    for (int n = 0; !is_over(); ++n) {
      scheduler_.sleep(up_to(2s));
      NewJob job;
      job.biz_id = "sql order " + std::to_string(n);
      job.type_id = 1;
      job.when.in = up_to(20s);
      const Shard shard = shard_of(job.biz_id, kMoveShards);
      FakeMoves& database = at(map_.database_of(shard));
      if (!database.lives_here(shard)) continue;  // create_job refuses
      FakeDatabase::Transaction transaction(database.data());
      transaction.create(job, wall());
      scheduler_.sleep(chance(0.1) ? up_to(5s) : up_to(300ms));
      if (chance(0.7)) transaction.commit();
    }
  }

  // Claims what is due, works on it, writes the outcome.
  void act_as_node() {
    while (report_.failures.empty() && scheduler_.now() < MonoTime{} + kMoveEnd) {
      scheduler_.sleep(up_to(200ms));
      std::vector<Candidate> due;
      for (const auto& [id, known] : jobs_)
        if (!is_final(known.status) && due.size() < 20) due.push_back({id, 1, wall()});
      for (const Candidate& job : due) {
        FakeDatabase& database = at(map_.database_of(job.lane().shard)).data();
        const auto won = database.claim({job}, {Duration(5s)}, {random_.int64(), "node", true}, wall()).won;
        if (!won.empty())
          scheduler_.spawn([this, claim = won.front()] { finish(claim, up_to(chance(0.1) ? 8s : 500ms)); });
      }
    }
  }

  void finish(const ClaimedJob& claim, Duration work) {
    scheduler_.sleep(work);
    const JobId id = claim.job.job_id;
    const auto kind = chance(0.1) ? FinishRequest::Kind::retry : FinishRequest::Kind::done;
    while (true) {
      const FinishRequest request{id, claim.token, kind, 100ms, "no"};
      const auto reply = at(map_.database_of(shard_of(id))).data().finish({request}, "node", wall()).front();
      if (reply == FinishReply::applied) return;
      if (reply == FinishReply::stale) {
        if (claim.job.fire_at > wall())
          breaks("the outcome of job " + std::to_string(id) + " was refused within its lease");
        return;
      }
      scheduler_.sleep(100ms);
    }
  }

  // The node's view of the map, and its watch over freezes.
  void read_map() {
    std::map<DatabaseId, std::unique_ptr<MoveSession>> ends;
    for (DatabaseId database_id = 0; database_id < kMoveDatabases; ++database_id)
      ends[database_id] = fake_move_end(at(database_id), std::nullopt, scheduler_, faults_);
    while (true) {
      scheduler_.sleep(up_to(2s));
      map_ = control().data().members.map();
      const auto moves = ends.at(0)->store().list();
      if (!moves) continue;
      for (const ShardMove& move : *moves) {
        if (!move.is_overdue) continue;
        const auto done = end_freeze(move, [&](DatabaseId database_id) { return &ends.at(database_id)->store(); });
        if (done && *done) ++report_.rescued, say("a node ends the freeze of shard " + std::to_string(move.shard));
      }
    }
  }

  void replicate(FakeMoves& database) {
    while (true) {
      scheduler_.sleep(chance(0.1) ? up_to(3s) : up_to(100ms));
      for (Shard shard = 0; shard < kMoveShards; ++shard)
        for (int most = 30; most > 0 && database.replicate(shard); --most) {
        }
    }
  }

  // Runs one command after the other, and kills some of them.
  void act_as_operator() {
    while (!is_over()) {
      scheduler_.sleep(up_to(8s));
      const bool is_troubled = scheduler_.now() < MonoTime{} + kTroubled;
      if (!is_troubled && control().list(wall()).empty()) return end_killed();
      bool is_ended = false;
      const auto command = scheduler_.spawn([this, &is_ended] {
        run_command();
        is_ended = true;
      });
      const MonoTime killed_at =
          is_troubled && chance(0.7) ? scheduler_.now() + up_to(chance(0.5) ? 500ms : 8s) : MonoTime::max();
      while (!is_ended && scheduler_.now() < killed_at && !is_over()) scheduler_.sleep(10ms);
      if (is_ended) continue;
      scheduler_.kill(command);
      ++report_.killed;
      say("the command is killed");
    }
  }

  // A command that was killed after it recorded itself, when another one had ended the move, has left its records. The
  // next command for the shard finds and ends them.
  void end_killed() {
    for (Shard shard = 0; shard < kMoveShards; ++shard)
      with_mover([&](ShardMover& mover) {
        if (auto done = mover.abort(shard); !done) breaks("records of a killed command stay: " + done.error().message);
      });
  }

  void with_mover(const std::function<void(ShardMover&)>& work) {
    FiberClock clock(scheduler_);
    std::vector<MoveDatabase> databases;
    for (DatabaseId database_id = 0; database_id < kMoveDatabases; ++database_id)
      databases.push_back({database_id, std::string(1, static_cast<char>('a' + database_id)), ""});
    const auto open_session = [this](DatabaseId database_id, std::optional<Shard> shard) {
      return fake_move_end(at(database_id), shard, scheduler_, faults_);
    };
    ShardMover mover(databases, open_session, clock,
                     {"", "", std::chrono::milliseconds(1000), std::chrono::milliseconds(20'000)},
                     [this](const std::string& step) { say("mover: " + step); });
    work(mover);
  }

  void run_command() {
    with_mover([this](ShardMover& mover) { run_command(mover); });
  }

  void run_command(ShardMover& mover) {
    const auto pending = control().list(wall());
    Status done = Unit{};
    if (pending.empty() || chance(0.1)) {
      const auto shard = static_cast<Shard>(random_.below(kMoveShards));
      const auto target = static_cast<DatabaseId>(random_.below(kMoveDatabases));
      say("command: move shard " + std::to_string(shard) + " to " + std::to_string(target));
      done = mover.move(shard, target);
      if (done) ++report_.switched;
    } else if (const ShardMove& first = pending.front(); first.state == ShardMove::State::aborting || chance(0.3)) {
      say("command: abort the move of shard " + std::to_string(first.shard));
      done = mover.abort(first.shard);
      if (done) ++report_.rolled_back;
    } else {
      say("command: go on with shard " + std::to_string(first.shard));
      done = mover.resume(first);
      if (done) ++report_.switched;
    }
    say(done ? "the command has ended" : "the command fails: " + done.error().message);
  }

  // Everything has had its time.
  void check_at_rest() {
    const ShardMap& map = control().data().members.map();
    std::map<JobId, int> copies;
    for (DatabaseId database_id = 0; database_id < kMoveDatabases; ++database_id) {
      FakeMoves& here = at(database_id);
      const std::string name = "database " + std::to_string(database_id);
      if (const std::string left = here.leftovers(); !left.empty())
        breaks("a move left behind in " + name + ": " + left);
      if (here.counted() != here.rows())
        breaks("I11: " + name + " counts " + std::to_string(here.counted()) + " jobs and has " +
               std::to_string(here.rows()));
      for (Shard shard = 0; shard < kMoveShards; ++shard)
        if (here.lives_here(shard) != (map.database_of(shard) == database_id))
          breaks("owner: shard " + std::to_string(shard) + " and " + name);
      for (const auto* table : {&here.data().live(), &here.data().history()})
        for (const auto& [id, row] : *table) ++copies[id];
    }
    for (const auto& [id, known] : jobs_) {
      const auto found = at(map.database_of(shard_of(id))).data().find(id);
      if (!found) return breaks("I1: job " + std::to_string(id) + " is lost");
      if (copies[id] != 1) return breaks("job " + std::to_string(id) + " is in two databases");
      if (found->status != known.status) return breaks("job " + std::to_string(id) + " is not as it was left");
    }
  }

  Random random_;
  std::deque<FakeDatabase> databases_;
  FakeMoveDatabases moves_;  // outlive calls that are under way
  Scheduler scheduler_;
  Trace trace_;
  Faults faults_{scheduler_, random_, trace_};
  ShardMap map_;  // as the node read it last
  std::map<JobId, Known> jobs_;
  MoveLifeReport report_;
};

}  // namespace

MoveLifeReport run_move_life(std::uint64_t seed, bool is_printed) { return MoveLife(seed, is_printed).run(); }

}  // namespace tocsin
