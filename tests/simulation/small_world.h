// SmallWorld: a simulation so small that a test can try every order of its events. It has one or two nodes with their
// real stages, one database, a few jobs, SQL callers, and a limited number of faults. Used by exhaustive_test.cc.
#pragma once

#include <array>
#include <bitset>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulation/small_node.h"
#include "support/fake_transaction.h"

namespace tocsin {

// How much of each kind may happen.
struct SmallScope {
  int nodes = 1;
  int jobs = 2;                                              // at most six, all due at once
  int crashes = 1;                                           // of the database
  int restarts = 1;                                          // of a node: it is killed, and starts again
  int cancels = 1, pairs = 0, reschedules = 1, retries = 1;  // of any job; pairs: two callers cancel one job at once
  int lost_answers = 0;                                      // of cancels and reschedules
  int lost_replies = 1, late_writes = 0, refusals = 0;       // of stages' writes; refusals: of the first job's outcome
  int standstills = 0;                                       // everything stands still for longer than a lease
  bool are_in_database = false;                              // the handlers: SQL functions
  // True: ready stages step after every event, so their orders are not tried; time passes only by the events below.
  bool runs_by_itself = false;
  int callers = 0;              // each calls create_job in a transaction of its own, all with one key
  int sql_cancels = 0;          // transactions that call cancel_job for any job, and stay open
  int writers = 0;              // other open transactions
  int seconds = 0, sweeps = 0;  // how often a second, or the interval of sweeps, passes
  bool operator==(const SmallScope&) const = default;
};

// What may happen so many times, and its name as a variable of the environment.
struct SmallTrouble {
  const char* name;
  int SmallScope::*number;
};
inline constexpr std::array kSmallTroubles{
    SmallTrouble{"CRASHES", &SmallScope::crashes},
    SmallTrouble{"RESTARTS", &SmallScope::restarts},
    SmallTrouble{"CANCELS", &SmallScope::cancels},
    SmallTrouble{"PAIRS", &SmallScope::pairs},
    SmallTrouble{"RESCHEDULES", &SmallScope::reschedules},
    SmallTrouble{"RETRIES", &SmallScope::retries},
    SmallTrouble{"LOST_ANSWERS", &SmallScope::lost_answers},
    SmallTrouble{"LOST_REPLIES", &SmallScope::lost_replies},
    SmallTrouble{"LATE_WRITES", &SmallScope::late_writes},
    SmallTrouble{"REFUSALS", &SmallScope::refusals},
    SmallTrouble{"STANDSTILLS", &SmallScope::standstills},
    SmallTrouble{"SQL_CANCELS", &SmallScope::sql_cancels},
    SmallTrouble{"WRITERS", &SmallScope::writers},
    SmallTrouble{"SECONDS", &SmallScope::seconds},
    SmallTrouble{"SWEEPS", &SmallScope::sweeps},
};
using SmallTroubles = std::bitset<kSmallTroubles.size()>;  // a set of them

// One create_job in a transaction of its own, step by step, so that other events may come between its steps. Thread:
// owner only.
class SmallSqlCaller {
 public:
  explicit SmallSqlCaller(SmallGround& ground) : ground_(ground) {}

  // The next step, in words; nullptr: none is left, or it waits for another transaction.
  const char* next() const;
  void go_on();
  bool is_open() const { return transaction_.has_value(); }
  bool has_ended() const { return done_ == kOrder.size(); }
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

// One cancel_job in a transaction of its own, which holds the row until it ends. Thread: owner only.
class SmallSqlCancel {
 public:
  // The cancel. Check is_open(): a job that cannot be cancelled ends the transaction.
  SmallSqlCancel(SmallGround& ground, JobId job);

  bool is_open() const { return transaction_.has_value(); }
  void commit();
  void roll_back() { transaction_.reset(); }
  std::string state() const;

 private:
  SmallGround& ground_;
  const JobId job_;
  const WallTime began_;
  std::optional<FakeDatabase::Transaction> transaction_;
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
  SmallTroubles happened() const;
  // Whether one job was cancelled after it was rescheduled.
  bool has_cancelled_rescheduled() const { return has_cancelled_rescheduled_; }

 private:
  static constexpr Duration kPulse = std::chrono::seconds(7);
  using NextWrite = SmallGround::NextWrite;
  using Act = std::function<bool()>;
  using Use = std::function<void(std::string name, const Act& act)>;

  static NewJob small_job(const char* key, Duration in);
  void begin_where_jobs_are_due();
  void list(const Use& use);
  void list_steps(const Use& use);
  void list_troubles(const Use& use);
  void list_calls(const Use& use);
  void list_handlers(const Use& use);
  void list_functions(const Use& use, SmallNode& node, std::size_t run);
  void list_sql(const Use& use);
  void trouble(const Use& use, const std::string& name, int& left, const Act& act);

  bool are_jobs_over() const;
  bool step_with(SmallGround::NextWrite effect, SmallNode& node, std::size_t stage);
  void advance();
  void pass(Duration time);
  bool step_all();
  void end_first(SmallNode& node);
  bool crash();
  std::vector<JobId> known_jobs() const;
  bool cancel(JobId job, NextWrite effect);
  bool cancel_twice(JobId job);
  bool reschedule(JobId job, NextWrite effect);
  void note_cancelled(JobId job);

  const SmallScope scope_;
  SmallScope left_;
  SmallGround ground_;
  std::vector<std::unique_ptr<SmallNode>> nodes_;
  std::vector<JobId> jobs_;
  JobId pulse_ = 0;  // rescheduled before it is due, again and again: scans read something of its lane
  std::set<JobId> rescheduled_;
  bool has_cancelled_rescheduled_ = false;
  std::vector<std::unique_ptr<SmallSqlCaller>> callers_;
  std::vector<std::unique_ptr<SmallSqlCancel>> sql_cancels_;
  std::vector<std::unique_ptr<FakeDatabase::Writer>> writers_;
};

}  // namespace tocsin
