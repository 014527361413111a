// Watches a simulated cluster and says which promise was broken. Believes neither the engine nor the database in
// memory: it keeps a record of its own of every job, from what was committed, started, answered and told to callers.
//
//   I1  an acknowledged job ends done, cancelled or dead        I5  the result of a lost claim changes nothing
//   I2  nothing starts before its time                          I6  attempts stay within the limit; then dead
//   I3  no start after a cancel, which one caller is told of    I7  memory within its bounds (SimNode measures)
//   I4  an attempt starts once; tokens are unique               I10 only the drawn edges of the state machine
//   live  what is due fires within the stated bound             calm  without faults, on time
//   handover  a node that drained keeps no claim                key   a key names one job while it is kept
//   wake  a permit that one engine of a node lets go is taken at once by another
//   limit     never more of a type run in the cluster than max_running, nor start faster than its rates
//   pause     nothing of a paused type starts                   late  what is too late by its type never runs
//   fair      a due job that is within its limits starts before so many jobs of other types that became due after it
//   effect    a SQL function has its effect once, in the transaction that makes the job done, under a claim that holds
//   lease     an ack, nack or extension counts while its lease holds, and then only; its answer says which
//
// Where a standby that lacks the last commits takes over, the record goes back as well, and what callers had been told
// and is gone is counted as a loss. Everything else holds on, for what is left.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ports/biz_type.h"
#include "ports/client_store.h"
#include "simulation/sim_database.h"
#include "tocsin/job.h"

namespace tocsin {

// A duration as text, in milliseconds.
std::string in_ms(Duration time);

// What standbys that lagged did not have when they took over.
struct Losses {
  std::int64_t created = 0;    // acknowledged jobs that are gone
  std::int64_t cancelled = 0;  // jobs that are there again, although their cancel was acknowledged
  std::int64_t outcomes = 0;   // jobs that had ended, and will run again
  std::int64_t claims = 0;     // jobs that were running, and are free again
  std::int64_t ids = 0;        // new jobs that have the id of one that is gone
};

// The data members are what each promise has to remember. Thread: owner only.
class Checker {
 public:
  // `may_lose`: a standby that takes over may lack what was acknowledged.
  Checker(Scheduler& scheduler, Trace& trace, const SimDatabases& databases, bool may_lose)
      : scheduler_(scheduler), trace_(trace), databases_(databases), may_lose_(may_lose), watched_(databases.size()) {}

  // What happened.
  void on_change(DatabaseId database_id, const FakeDatabase::Change& change);  // committed
  void on_start(const std::string& node, const ClaimedJob& claimed);           // a handler began
  void on_queued(const ClaimedJob& claimed);  // its SQL function will be called, if the claim still holds then
  // Its function was called, and said so, in the transaction that ends the attempt. An effect is what it says `done`
  // to.
  void on_call(const ClaimedJob& claimed, const Outcome& outcome);
  void on_lease(const std::string& node, const ClaimedJob& claimed);  // a consumer was handed it, and began
  void on_answer(const ClaimedJob& claimed, const Outcome& outcome);  // and gave its outcome
  // A consumer that had given its answer heard of its ack or nack.
  void on_lease_reply(const ClaimedJob& claimed, LeaseReply reply);
  void on_lease_left(const ClaimedJob& claimed);   // it gives up: no outcome of the attempt will come
  void on_crash(const std::string& node);          // what it had in memory is lost
  void on_drained(const std::string& node);        // it had time to hand over, without faults
  void on_created(JobId job);                      // a caller was told so
  void on_cancel_reply(const CancelReply& reply);  // likewise
  void on_clock_step(DatabaseId database_id);
  void on_refusal(JobId job) { refused_until_[job] = MonoTime::max(); }  // nothing that ends it is written
  void on_acceptance(JobId job) { refused_until_[job] = scheduler_.now(); }
  // The standby of a database hears no more.
  void on_standby_lags(DatabaseId database_id);
  // And takes over. Returns the jobs whose claims are gone with what it had not heard.
  std::vector<JobId> on_failover(DatabaseId database_id);
  // The limits that hold from now on; `hold`: what a dead node had is kept for it so long.
  void on_types(const std::vector<BizType>& types, Duration hold);

  // From now on nothing fails any more: what is overdue must be gone within `bound`.
  void faults_ended(Duration bound);
  // From now on the jobs named must be claimed within their bound after their time.
  void calm_begins() { is_calm_ = true; }
  void expect_within(JobId job, Duration bound) { calm_bounds_[job] = bound; }
  // From now on at most so many jobs of other types in its database that became due after this one may start before it.
  void expect_before(JobId job, std::size_t others) { may_overtake_[job] = others; }
  // Times without an outage: what failed before is mended from `from` on.
  struct Quiet {
    MonoTime from;
    std::size_t on_their_way = 0;  // jobs: two batches of each claimer
    std::size_t batch = 0;         // jobs of a batch, at most
    std::size_t slots = 0;         // of running jobs, per engine
    bool is_one_engine = false;    // so all permits and rates are its own
  };
  void quiet_begins(const Quiet& quiet) { quiet_ = quiet; }
  void quiet_ends() { quiet_.reset(), overtaken_.clear(), rated_.clear(); }
  // A node keeps it in memory, or its lane as backlog: it was told of it, or a scan of it has read its row.
  void on_hinted(const std::string& node, JobId job);
  void on_read(const std::string& node, JobId job);
  // A node has accepted the poll of a consumer. Returns its number; it is over when it is answered, or given up.
  std::uint64_t on_poll(const std::string& node, TypeId type);
  void on_poll_over(std::uint64_t poll) { polls_.erase(poll); }
  // Whether a node may start one more job of a type now, by the permits and rates that it was lent.
  using Admits = std::function<bool(const std::string& node, const BizType& type)>;
  void ask_of_limits(Admits admits) { admits_ = std::move(admits); }
  // Whether a node that knew of a job still keeps it, or has no excuse: a full time wheel drops jobs, and the next scan
  // finds them.
  using Keeps = std::function<bool(const std::string& node, JobId job)>;
  void ask_of_memory(Keeps keeps) { keeps_ = std::move(keeps); }
  void on_locked(JobId job) { overtaken_.erase(job); }  // another transaction holds the row
  // Called now and then after faults_ended().
  void check_overdue();
  // The end: the world is at rest.
  void check_end();

  // Number of jobs that nodes other than `node` made due again in the past within the last minute, by releasing their
  // claims.
  std::size_t released_by_others(const std::string& node) const;

  void fail(const std::string& promise, const std::string& what);
  const std::vector<std::string>& failures() const { return failures_; }
  bool is_calm() const { return is_calm_; }
  const Losses& losses() const { return losses_; }
  std::size_t created() const { return records_.size(); }
  std::size_t starts() const { return starts_; }

 private:
  using Kind = FakeDatabase::Change::Kind;

  struct Attempt {
    JobId job = 0;
    int number = 0;
    int life = 0;
    std::string node;
    MonoTime lease_end{};  // by a clock that does not step
    int clock_steps = 0;   // of its database before the claim
    int control_shocks = 0;
    std::uint64_t change = 0;  // the number of the claim among all changes
    bool is_hastened = false;
    bool is_started = false;
    bool is_leased = false;      // by a consumer
    bool is_called = false;      // a SQL function
    bool is_given_back = false;  // it never started
    bool is_written = false;     // its outcome
    MonoTime ends{};             // the handler's own deadline
    std::optional<Outcome> answer;
    MonoTime answered{};
    MonoTime claimed{};
    bool is_orphan = false;  // the process that held it is gone, or never heard of it
    bool is_lost = false;    // the database came back without the claim
    bool is_lost_to_standby = false;
  };
  struct Record {
    Job row;          // after the last committed change
    MonoTime came{};  // when it was committed: its time may have passed long before
    ClaimToken token = 0;
    int life = 0;              // grows with whatever counts its attempts anew
    bool is_hastened = false;  // run now: may start before its action_time
    bool is_changed = false;   // since it was created
    bool is_acknowledged = false;
    bool is_cancel_acknowledged = false;
    int effects = 0;                        // of its SQL function
    std::set<std::pair<int, int>> started;  // (life, attempt)
  };

  // One database.
  struct Watched {
    WallTime high = WallTime::min();  // the latest its clock has ever shown a statement
    int clock_steps = 0;
    MonoTime clock_stepped{};
    std::map<JobId, Record> standby;  // as of change number standby_at
    std::uint64_t standby_at = 0;
  };

  // The live jobs of one type in one database.
  struct Queue {
    JobId oldest = 0;
    WallTime due = WallTime::max();  // the oldest
    bool is_running = false;         // one of them
    std::set<Shard> shards;          // with due ones
  };
  struct Overtaken {              // by jobs that became due later
    std::set<std::string> nodes;  // that know of it
    std::size_t jobs = 0, shards = 1;
    std::set<TypeId> types;
    std::set<int> forms;  // of claims, and its own
    void begin_anew() { jobs = 0, shards = 1, types.clear(), forms.clear(); }
  };

  Watched& watched(JobId job) { return watched_[static_cast<std::size_t>(databases_.of(job).id)]; }
  void shake_control() { ++control_shocks_, control_shaken_ = scheduler_.now(); }
  void begin(const std::string& node, const ClaimedJob& claimed, bool is_leased);
  void check_lease(const FakeDatabase::Change& change, const Record& before);
  void go_back(Record& now, const Record& then);
  void lose_job(const Record& record);
  void lose(std::int64_t& count, const char* promise, const std::string& what);
  void forget_claim(Record& record, ClaimToken lost);
  void check_change(const FakeDatabase::Change& change, const Record& before);
  void check_edge(const FakeDatabase::Change& change, const Record& before);
  void check_claim(const FakeDatabase::Change& change, const Record& before);
  void check_result(const FakeDatabase::Change& change, const Record& before);
  void check_effects();
  void check_claim_is_held(const std::string& name, const Attempt& attempt);
  void check_calm(const FakeDatabase::Change& change, const Record& before);
  void check_flow(const FakeDatabase::Change& change, const Record& before);
  void check_fairness(const FakeDatabase::Change& change, const Record& before);
  void check_turns(const FakeDatabase::Change& change, const Record& before);
  void read_queues(const SimDatabase& database, WallTime db_now);
  void pass_turn(const BizType& served, DatabaseId database_id);
  bool may_start(const BizType& type, const Queue& queue, const Overtaken& its, WallTime db_now);
  bool is_within_limits(const BizType& type, const Queue& queue, const std::string& node, WallTime db_now) const;
  bool has_slot(const BizType& type, const std::string& node, DatabaseId database_id);
  bool has_poll(const BizType& type, const std::string& node) const;
  bool holds_slot(ClaimToken token) const;
  void check_rate(const BizType& type, double rate, std::deque<MonoTime>& starts, const char* what);
  void check_running(const BizType& type);

  Scheduler& scheduler_;
  Trace& trace_;
  const SimDatabases& databases_;
  const bool may_lose_;
  std::vector<Watched> watched_;  // by database id
  std::uint64_t changes_ = 0;
  std::map<JobId, Record> records_;
  std::map<ClaimToken, Attempt> attempts_;
  std::set<std::tuple<std::string, TypeId, std::string>> keys_;
  std::map<JobId, Duration> calm_bounds_;
  std::map<JobId, std::size_t> may_overtake_;  // of jobs that have not started
  std::optional<Quiet> quiet_;
  std::map<TypeId, Queue> queues_;                                            // of one database
  std::pair<DatabaseId, WallTime> queues_read_{-1, {}};                       // which, and when
  std::map<JobId, Overtaken> overtaken_;                                      // jobs that nodes know of
  std::map<std::pair<std::string, DatabaseId>, std::set<ClaimToken>> slots_;  // claims that hold one, by engine
  std::map<std::uint64_t, std::pair<std::string, TypeId>> polls_;             // that wait
  std::uint64_t last_poll_ = 0;
  Admits admits_;
  Keeps keeps_;
  std::map<TypeId, std::deque<MonoTime>> rated_;  // starts of the last second, of types with a rate
  std::optional<MonoTime> faults_ended_;
  std::optional<Duration> overdue_bound_;
  bool is_calm_ = false;
  // Steps of the control database's clock and failovers there: they end permits before their time, or bring back old
  // ones.
  int control_shocks_ = 0;
  MonoTime control_shaken_{};
  struct Released {
    MonoTime at;
    JobId job;
    std::string node;
  };
  std::deque<Released> released_;  // due again in the past
  Losses losses_;
  std::set<JobId> lost_ids_, ids_come_again_;
  std::map<JobId, MonoTime> refused_until_;
  std::map<TypeId, BizType> types_;
  std::map<TypeId, MonoTime> paused_at_;
  Duration hold_{0};
  std::map<TypeId, std::set<ClaimToken>> running_;            // of types with max_running
  std::map<TypeId, std::deque<MonoTime>> paced_, caught_up_;  // claims, since the faults ended
  std::size_t starts_ = 0;
  std::vector<std::string> failures_;
};

const char* to_string(FakeDatabase::Change::Kind kind);

}  // namespace tocsin
