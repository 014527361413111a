// SmallWorld: a simulation so small that a test can try every order of its events. It has one or two nodes with their
// real stages, one database, a few jobs, SQL callers, and a limited number of faults. Used by exhaustive_test.cc.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/small_node.h"
#include "support/fake_transaction.h"

namespace tocsin {

// How much of each kind may happen.
struct SmallScope {
  int nodes = 1;
  int jobs = 2;                                              // at most six, all due at once
  int crashes = 1;                                           // of the database, or of a node, which starts again
  int cancels = 1, pairs = 0, reschedules = 1, retries = 1;  // pairs: two callers cancel one job at once
  int lost_replies = 1, late_writes = 0, refusals = 0;       // of writes; refusals: the store refuses an outcome
  int standstills = 0;                                       // everything stands still for longer than a lease
  // True: ready stages step after every event, so their orders are not tried; time passes only by the events below.
  bool runs_by_itself = false;
  int callers = 0;              // each calls create_job in a transaction of its own, all with one key
  int writers = 0;              // other open transactions
  int seconds = 0, sweeps = 0;  // how often a second, or the interval of sweeps, passes
  bool operator==(const SmallScope&) const = default;
};

// One create_job in a transaction of its own, step by step, so that other events may come between its steps. Thread:
// owner only.
class SmallSqlCaller {
 public:
  explicit SmallSqlCaller(SmallGround& ground) : ground_(ground) {}

  // The next step, in words; nullptr: none is left, or it waits for another transaction.
  const char* next() const;
  void go_on();
  bool is_open() const { return transaction_.has_value(); }
  void roll_back();
  // Its job, if the transaction created one and is committed.
  std::optional<JobId> committed() const { return committed_; }
  std::string state() const;

 private:
  enum class Step { read_clock, take_id, insert, commit };
  static constexpr std::array kOrder{Step::take_id, Step::read_clock, Step::insert, Step::commit};
  static constexpr std::array kWrongOrder{Step::read_clock, Step::take_id, Step::insert, Step::commit};
  Step step() const { return (ground_.bugs.clock_before_id ? kWrongOrder : kOrder)[done_]; }
  static NewJob job();

  SmallGround& ground_;
  std::size_t done_ = 0;
  std::optional<FakeDatabase::Transaction> transaction_;
  WallTime clock_{};
  std::optional<JobId> inserted_, committed_;
};

// Thread: owner only.
class SmallWorld {
 public:
  SmallWorld(const SmallWorldBugs& bugs, const SmallScope& scope);

  // events(): what can happen now, in words. perform(): makes one of them happen, by its index. False: it had no
  // effect.
  std::vector<std::string> events();
  bool perform(std::size_t chosen);

  // Continues without faults until all jobs have ended; the outcome that the store refuses may stay. Records a broken
  // promise if they do not end.
  void run_out();
  // All jobs have ended, and no handler or late write is under way.
  bool has_ended() const;
  // Describes everything that decides what can happen next: the search continues only from states not seen before.
  std::string state() const;
  const std::string& broken() const { return ground_.broken; }

 private:
  static constexpr Duration kPulse = std::chrono::seconds(7);
  using Act = std::function<bool()>;
  using Use = std::function<void(std::string name, const Act& act)>;

  static NewJob small_job(const char* key, Duration in);
  void begin_where_jobs_are_due();
  void list(const Use& use);
  void list_steps(const Use& use);
  void list_troubles(const Use& use);
  void list_handlers(const Use& use);
  void list_sql(const Use& use);
  void trouble(const Use& use, const std::string& name, int& left, const Act& act);

  bool are_jobs_over() const;
  bool step_with(SmallGround::NextWrite effect, SmallNode& node, std::size_t stage);
  void advance();
  void pass(Duration time);
  bool step_all();
  bool cancel(JobId job);
  bool cancel_twice(JobId job);

  SmallScope left_;
  SmallGround ground_;
  std::vector<std::unique_ptr<SmallNode>> nodes_;
  std::vector<JobId> jobs_;
  JobId pulse_ = 0;  // rescheduled before it is due, again and again: scans read something of its lane
  std::vector<std::unique_ptr<SmallSqlCaller>> callers_;
  std::vector<std::unique_ptr<FakeDatabase::Writer>> writers_;
};

}  // namespace tocsin
