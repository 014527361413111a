// A world so small that every order of its events can be tried: one or two nodes with their real stages, one database,
// a few jobs, callers of SQL, and a budget of troubles.
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

// What may happen in it, and how often.
struct SmallScope {
  int nodes = 1;
  int jobs = 2;     // that are due at once
  int crashes = 1;  // of the database, or of a node, which starts again
  int cancels = 1, pairs = 0, reschedules = 1, retries = 1;
  int lost_replies = 1, late_writes = 0, refusals = 0;
  int standstills = 0;  // longer than a lease
  // Stages step without being told, and these only pass or end:
  bool runs_by_itself = false;
  int callers = 0;  // of create_job, each in a transaction of its own, all with one key
  int writers = 0;  // other transactions
  int seconds = 0, sweeps = 0;
};

// One create_job in a transaction of its own, with the moments at which others may come in between.
// Thread: owner only.
class SmallSqlCaller {
 public:
  explicit SmallSqlCaller(SmallGround& ground) : ground_(ground) {}

  // What it does next; nullptr: nothing, or it waits for another transaction.
  const char* next() const;
  void go_on();
  bool is_open() const { return transaction_.has_value(); }
  void roll_back();
  // Its job, once it is committed.
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

  // What can happen now, by name; performs the one chosen. False: nothing came of it.
  std::vector<std::string> events();
  bool perform(std::size_t chosen);

  // Without any more trouble everything comes to its end, but for an outcome that the store refuses.
  void run_out();
  // All jobs have ended, and nobody is at work.
  bool has_ended() const;
  // Of everything that decides what can happen next, as far as it shows.
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
  JobId pulse_ = 0;  // moved away before it is due, over and over: scans always read something of its lane
  std::vector<std::unique_ptr<SmallSqlCaller>> callers_;
  std::vector<std::unique_ptr<FakeDatabase::Writer>> writers_;
};

}  // namespace tocsin
