// SmallNode: one node of a SmallWorld (small_world.h): a real engine whose stages the test steps one by one.
// SmallGround: what the nodes share. Used by exhaustive_test.cc, which tries every order of events.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/waker.h"
#include "pipeline/engine.h"
#include "simulation/sim_functions.h"

namespace tocsin {

// Mistakes that a test plants; the search must find each.
struct SmallWorldBugs {
  bool async_claims = false;       // the claim does not wait for the disk
  bool clock_before_id = false;    // create_job reads its clock before its transaction has an id
  bool calls_lost_claims = false;  // the transaction of a SQL function does not look up the claim's token
  bool hides_refused_row = false;  // a row that the store refuses looks like a store that is unavailable
  FakeBugs store{};
};

// A call of a store, as far as it decides what can happen later.
struct SmallCall {
  std::string words;
  std::vector<Lease> claims;  // whose outcomes it writes
};

// The database, the time, the faults of the next write, and the promises that must always hold. Thread: owner only.
class SmallGround final : public Clock, public FaultPoint, public EventSink {
 public:
  enum class NextWrite { happens, loses_its_reply, arrives_later };

  explicit SmallGround(const SmallWorldBugs& planted);

  MonoTime now() const override { return time; }

  Effect before(const FakeCall& call) override;
  void working(const FakeCall&) override {}
  bool after(const FakeCall& call) override;
  void keep(std::function<void()> effect) override {
    on_their_way.push_back({under_way, database.generation(), std::move(effect)});
  }

  void count(Counter what, std::int64_t n) override;
  void started(TypeId, Duration) override {}
  void failed(std::string_view, const Error&) override {}

  void breaks(const std::string& promise) {
    if (broken.empty()) broken = promise;
  }
  void on_start(const ClaimedJob& claimed);
  // A SQL function was called for the job.
  void on_call(const ClaimedJob& claimed, const Outcome& outcome);
  // The late writes.
  void write_state(std::ostream& out) const;
  void write_call(std::ostream& out, const SmallCall& written) const;
  void write_claim(std::ostream& out, const Lease& claim) const;
  Duration since(MonoTime then) const { return time - then; }

  const SmallWorldBugs bugs;
  MonoTime time{};
  FakeDatabase database;
  FakeBusiness business;
  bool are_in_database = false;  // the handlers, which are SQL functions
  NextWrite next_write = NextWrite::happens;
  SmallCall under_way;  // the store call that a stage makes
  struct LateWrite {
    SmallCall call;
    std::uint64_t generation;  // of the database, which drops it after a crash
    std::function<void()> effect;
  };
  std::vector<LateWrite> on_their_way;  // writes that were answered with in_doubt
  std::set<JobId> cancelled;            // jobs whose cancel was acknowledged
  std::set<JobId> uncommitted;          // jobs of open transactions
  std::string broken;                   // the first broken promise; empty: none

 private:
  struct Claim {
    ClaimToken token;
    WallTime lease_ends;
  };
  void check(const FakeDatabase::Change& change);

  std::map<JobId, Claim> claims_;
  std::map<JobId, WallTime> due_;
  std::set<ClaimToken> started_;
  std::set<JobId> effects_;  // of SQL functions
};

// The data members are the process, and what the calls of its stores have shown of its memory. Thread: owner only.
class SmallNode {
 public:
  SmallNode(SmallGround& ground, int number, std::shared_ptr<const TypeCatalog> catalog);
  ~SmallNode();

  // A caller's reply brings the new time of a job.
  void hint(const Candidate& job);
  // A notification asks for a scan from the floor.
  void sweep() { engine_->request_sweep(); }
  // Kills the process and starts a new one: handlers and memory are lost.
  void restart();

  std::size_t stages() const { return stages_.size(); }
  std::string name_of(std::size_t stage) const { return name_ + "'s " + stages_[stage]->name(); }
  // Whether this stage writes to the store (claimer, finisher, lease reaper).
  bool writes(std::size_t stage) const;
  bool is_ready(std::size_t stage) const { return flags_[stage].is_set || next_[stage] <= ground_.time; }
  void step(std::size_t stage);
  // Steps the stages that call no store (timekeeper, poll time-outs): their order does not matter to other nodes.
  void settle();
  MonoTime next_time() const;

  std::size_t running() const { return runs_.size(); }
  void answer(std::size_t run, Outcome outcome);
  // As the handler of kind `sql`: calls the function of this attempt, which says so. False: `effect` changed nothing.
  bool call(std::size_t run, const Outcome& outcome, SmallGround::NextWrite effect);
  const EngineShared& shared() const { return engine_->shared(); }
  // Describes the process: its queues, and what its stages keep, as the calls of its stores have shown it.
  void write_state(std::ostream& out) const;

 private:
  class Store;
  class Flag final : public Waker {
   public:
    void wake() override { is_set = true; }
    bool is_set = true;
  };
  class Starter final : public Handler {
   public:
    explicit Starter(SmallNode& node) : node_(node) {}
    void start(const ClaimedJob& job, Finish finish) override {
      if (!node_.ground_.are_in_database) node_.ground_.on_start(job);
      node_.set_step(job.token, 's');
      node_.runs_.push_back({job, std::move(finish)});
    }

   private:
    SmallNode& node_;
  };
  struct Run {
    ClaimedJob claimed;
    Handler::Finish finish;
  };
  // A claim that this process won and whose outcome is not written yet.
  struct Held {
    Lease claim;
    MonoTime asked;
    char step;  // c: claimed, s: its handler has started, d or r: it has answered done or retry
  };
  // A row as this process has seen it last.
  struct Seen {
    WallTime fire_at{};
    int misses = 0;     // claims since then that did not win it
    WallTime hinted{};  // the time that a caller's reply brought since then
  };
  void start();
  void hold(const std::vector<ClaimedJob>& won, MonoTime asked);
  void set_step(ClaimToken token, char step);

  SmallGround& ground_;
  const std::string name_;
  const std::shared_ptr<const TypeCatalog> catalog_;
  Starter handler_{*this};
  std::vector<std::unique_ptr<Store>> stores_;
  std::unique_ptr<Engine> engine_;
  std::vector<Stage*> stages_;
  std::deque<Flag> flags_;
  std::vector<MonoTime> next_;
  std::vector<int> steps_;  // of each stage since it rested: a scan takes several, and some of them call no store
  std::vector<Run> runs_;
  std::vector<Held> held_;
  std::map<JobId, Seen> seen_;
  std::uint64_t process_ = 0;
};

}  // namespace tocsin
