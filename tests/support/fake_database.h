// FakeDatabase: one database of Tocsin (jobs, types, members, permits) in memory. The contract suite runs on it and on
// PostgreSQL; the simulator and other tests use it in place of PostgreSQL, through the stores of fake_sessions.h.
#pragma once

#include <algorithm>
#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ports/client_store.h"
#include "ports/job_store.h"
#include "ports/report_store.h"
#include "ports/row_refusal.h"
#include "ports/type_store.h"
#include "support/fake_bugs.h"
#include "support/fake_members.h"
#include "support/fake_permits.h"

namespace tocsin {

// Each call of a store is a method here. `now`: the database's clock as the statement read it. The data members are the
// tables, and what a test has told the database to do. Thread: owner only.
class FakeDatabase {
 public:
  using WallClock = std::function<WallTime()>;
  // Minimum age of the oldest open transaction, because other programs keep transactions open, too. It holds back the
  // xmin watermark that scans return (no row due before it can be committed any more).
  Duration writer_lag = std::chrono::seconds(10);
  explicit FakeDatabase(WallClock clock, int shards = kDefaultShards);

  struct Row {
    Job job;
    ClaimToken token = 0;
    std::string body;  // of the request that created it; a repeated create must have the same
  };

  // One committed change of one row. `job`: the row after it. `token`: of the claim, or as the outcome brought it.
  struct Change {
    enum class Kind {
      created,
      replaced,
      rescheduled,
      hastened,  // made due now
      revived,
      claimed,
      fired,
      done,
      dead,
      retried,
      released,
      marked_dead,
      cancelled,
      dropped,
      extended,   // a consumer keeps its lease longer
      claim_lost  // a crash undid the claim; `token`: of the claim before it, if the row was running then
    };
    Kind kind;
    const Job& job;
    ClaimToken token;
    WallTime db_now;
    bool is_durable = true;  // of a claim: its commit waited for the disk
  };
  std::function<void(const Change&)> on_change;
  FakeBugs bugs;
  FakeMembers members;
  // The answers to reports, and the requests for them.
  std::map<Report, std::vector<std::string>> report_rows;
  std::optional<Error> report_error;  // the answer, in place of rows
  std::vector<ReportQuery> reports_asked;
  FakePermits permits;  // limits as in the registry, unless a test replaces FakePermits::total_of

  WallTime now() const { return clock_(); }
  int shards() const { return shards_; }
  const std::map<JobId, Row>& live() const { return live_; }
  const std::map<JobId, Row>& history() const { return history_; }

  // An open transaction that writes; scans wait for its rows. `began`: when it got its number (transaction id). A
  // caller that reads its clock before that breaks the contract of ScanReply (ports/job_store.h).
  class Writer {
   public:
    Writer(FakeDatabase& database, WallTime began)
        : open_(database.writers_), at_(open_.insert(database.transaction_number(began))) {}
    ~Writer() { open_.erase(at_); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

   private:
    std::multiset<std::int64_t>& open_;
    std::multiset<std::int64_t>::iterator at_;
  };

  class Transaction;  // support/fake_transaction.h

  // Locks a row as another open transaction does: claims skip it, finishes are `busy`, other writes a conflict.
  void lock(JobId job) { locked_.insert(job); }
  void unlock(JobId job) { locked_.erase(job); }
  int lock_waits = 0;  // how often a caller's create or cancel would have waited some seconds for a lock or a key
  bool is_locked(JobId job) const {
    return !bugs.ignores_locks && (locked_.contains(job) || held_jobs_.contains(job) || is_away(shard_of(job)));
  }

  // For moves of shards: rows of a frozen shard, and copies, act as locked rows; copies change without a call of
  // on_change.
  std::set<Shard> frozen;
  // false: creates of the shard are refused, and its rows are copies; null: all live here.
  std::function<bool(Shard)> lives_here;
  bool is_away(Shard shard) const { return frozen.contains(shard) || (lives_here && !lives_here(shard)); }
  struct Copy {
    Row row;
    bool is_live = true;
  };
  std::optional<Copy> copy_of(JobId job) const;
  void put_copy(const Copy& copy);
  void drop_copy(JobId job);
  // For the relay: inserts a job from the outbox of another database; returns the job that has a key already.
  void insert_with_id(JobId id, const std::string& biz_id, TypeId type, WallTime action_time,
                      const std::optional<std::string>& key, WallTime created, WallTime now);
  std::optional<JobId> job_with_key(const std::string& biz_id, TypeId type,
                                    const std::optional<std::string>& key) const;
  bool has_other_writers() const { return writers_.size() > 1; }  // besides the asking one

  // What ends, changes or revives this job, or creates a job of the business key, is refused with this Error. A call
  // that is all or nothing fails with it. Claims are refused of the jobs of refuse_claim() alone.
  static Error refused_row() { return {ErrorCode::invalid, "a row that no table takes", ""}; }
  static Error unwritable_row() { return {ErrorCode::unavailable, "a trigger fails", kRefused}; }
  void refuse(JobId job, const Error& why = refused_row()) { refused_.insert_or_assign(job, why); }
  void refuse_new(const std::string& biz_id, const Error& why) { refused_new_.insert_or_assign(biz_id, why); }
  void refuse_claim(JobId job) { refused_claims_.insert(job); }
  void accept(JobId job) { refused_.erase(job); }
  void accept_claim(JobId job) { refused_claims_.erase(job); }
  bool refuses_claim(JobId job) const { return refused_claims_.contains(job); }
  void refuse_nothing() { refused_.clear(), refused_new_.clear(), refused_claims_.clear(); }
  bool refuses(JobId job) const { return refused_.contains(job); }
  std::optional<Error> refusal(JobId job) const {
    const auto why = refused_.find(job);
    return why == refused_.end() ? std::nullopt : std::optional(why->second);
  }
  std::optional<Error> refusal(const std::vector<JobId>& jobs) const {
    const auto job = std::find_if(jobs.begin(), jobs.end(), [&](JobId each) { return refuses(each); });
    return job == jobs.end() ? std::nullopt : refusal(*job);
  }
  // The state after a restore: a finished job has the id of another job, and the id sequence begins anew.
  void give_id(JobId finished, JobId id);
  void begin_ids_anew();
  void begin_ids_at(std::int64_t sequence) { last_sequence_ = sequence; }  // gives several databases disjoint ids
  // JobStore
  ScanReply scan(const std::vector<ScanRange>& ranges, const LaneSearch& search, WriterMark mark, WallTime now);
  Claims claim(const std::vector<Candidate>& jobs, const std::vector<Duration>& ttr, const ClaimTicket& ticket,
               WallTime now);
  Result<Claims> claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket, WallTime now);
  std::vector<ClaimedJob> claimed_with(const ClaimTicket& ticket, const std::vector<JobId>& jobs) const;
  std::vector<ClaimedJob> claimed_with(const ClaimTicket& ticket, Lane lane) const;
  std::vector<Fired> fire(const std::vector<Candidate>& jobs, const std::string& node, WallTime now);
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node, WallTime now);
  std::vector<FinishReply> finish(const std::vector<FinishRequest>& requests, const std::string& node, WallTime now);
  int mark_dead(const std::vector<JobId>& jobs, WallTime now);
  Result<int> drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node, WallTime now);

  // The state of a standby: everything committed up to a moment. Ids of jobs that it lacks are given again.
  struct Snapshot {
    std::int64_t last_sequence = 0;
    std::map<JobId, Row> live, history;
    std::map<std::string, BizType> types;
    FakeMembers members;
    FakePermits permits;
  };
  Snapshot snapshot() const;
  // The standby takes over: later commits and calls under way are lost, and no transaction is open.
  void restore(const Snapshot& standby);
  std::uint64_t generation() const { return generation_; }  // grows at restore() and crash()
  // Crash and recovery: loses claims since the last change that waited for the disk; returns their jobs.
  std::vector<JobId> crash(WallTime now);
  // ClientStore
  Result<std::vector<CreateReply>> create(const std::vector<NewJob>& jobs, CreateMode mode, WallTime now);
  Result<std::vector<CancelReply>> cancel(const std::vector<JobId>& jobs, WallTime now);
  Result<CancelAllReply> cancel_all(const std::string& biz_id, std::optional<TypeId> type, WallTime now);
  ChangeBatchReply change_together(const ChangeBatch& batch, WallTime now);
  std::vector<std::optional<Job>> find(const std::vector<JobId>& jobs) const;
  std::vector<KeyList> list_keys(const std::vector<KeyQuery>& queries) const;
  Result<ChangeReply> reschedule(JobId job, const When& when, WallTime now);
  Result<ChangeReply> run_now(JobId job, WallTime now);
  Result<ChangeReply> retry(JobId job, WallTime now);
  std::vector<std::optional<Duration>> leases_left(const std::vector<Lease>& leases, WallTime now) const;
  std::vector<std::optional<LeasedJob>> leased(const std::vector<Lease>& leases, WallTime now) const;
  Result<std::vector<LeaseResult>> finish_leased(const std::vector<FinishRequest>& requests, const std::string& node,
                                                 WallTime now);
  Result<std::vector<LeaseResult>> extend(const std::vector<Extension>& extensions, WallTime now);
  Result<int> retry_many(const ClientStore::RetryMany& request, WallTime now);
  // ReportStore
  std::optional<Job> find(JobId job) const;
  std::vector<Job> list(const JobFilter& filter) const;
  std::vector<TypeCount> counts() const;
  std::int64_t overdue(int at_most, WallTime now) const;
  // TypeStore
  std::vector<BizType> list_types(TypeStore::Removed removed = TypeStore::Removed::left_out) const;
  bool has_any_type(const std::vector<std::string>& names, TypeStore::Removed removed) const;
  bool has_version(const std::string& type, WallTime version) const;
  TypeStore::PutReply put_type(const BizType& type, WallTime now);
  void mirror_types(const std::vector<BizType>& types);
  TypeStore::RemoveReply remove_type(const std::string& name, TypeStore::Registry registry, WallTime now);
  void renew_type(const std::string& name, WallTime now);
  std::optional<BizType> pause_type(const std::string& name, bool paused, std::optional<WallTime> until, WallTime now);

 private:
  using Live = std::map<JobId, Row>::iterator;
  bool is_removed(TypeId type) const;
  Live find_candidate(const Candidate& job);  // end(): no live job has this id and type
  using Key = std::tuple<std::string, TypeId, std::string>;

  void insert_live(Row row);
  Row take_live(Live row);
  void edit_live(Live row, const std::function<void(Row&)>& edit);
  void to_history(Live row, JobStatus status, Change::Kind kind, ClaimToken token, WallTime now);
  void free_id(JobId id, WallTime now);
  void revive(JobId job, WallTime fire_at, WallTime now);
  void tell(Change::Kind kind, const Row& row, WallTime now, ClaimToken token = 0, bool is_durable = true);

  bool is_claimable(const Row& row, WallTime now) const;
  ClaimToken token_of(JobId job, const ClaimTicket& ticket) const;
  void begin_attempt(Row& row, const std::string& node, WallTime now) const;
  // As sql/parts/not_before_deadline.sql: when a row that was claimed is due next.
  WallTime not_before_deadline(const Job& job, WallTime time) const;
  ClaimedJob claim_row(Live row, Duration ttr, const ClaimTicket& ticket, WallTime now);
  Fired fire_row(Live row, const std::string& node, WallTime now);
  void find_lanes(const LaneSearch& search, ScanReply& reply) const;
  std::vector<JobId> due_in(Lane lane, DueSpan span, int limit, WallTime now) const;
  FinishReply finish_one(const FinishRequest& request, const std::string& node, WallTime now);

  using Undo = std::vector<std::pair<JobId, std::optional<Row>>>;
  template <class AnyJob>  // REQUIRES: it has a key
  static Key key_of(const AnyJob& job) {
    return {job.biz_id, job.type_id, *job.idempotency_key};
  }
  bool is_held(const NewJob& job) const;
  const Error* refusal_of_new(const NewJob& job) const;
  CreateReply create_one(const NewJob& job, Undo& undo, WallTime now);
  CreateReply answer_with_existing(const NewJob& job, Live row, Undo& undo, WallTime now);
  void roll_back(const Undo& undo);
  bool holds(const Lease& lease, WallTime now) const;
  CancelReply cancel_one(JobId job, WallTime now);
  Result<KeyCancelReply> cancel_key(const KeyCancel& key, WallTime now);
  ChangeReply unchanged(JobId job) const;

  WallClock clock_;
  const int shards_;
  std::int64_t last_sequence_ = 0;
  TypeId last_type_ = 0;
  std::map<JobId, Row> live_;
  std::map<JobId, Row> history_;
  std::set<std::tuple<Lane, WallTime, JobId>> due_;  // the jobs of live_, by lane (type and shard) and time
  std::multiset<std::int64_t> writers_;              // the numbers of open transactions
  // Transactions are numbered by the microsecond in which they begin. A clock that is set back makes no number smaller.
  std::int64_t transaction_number(WallTime now) {
    const std::int64_t by_clock = now.time_since_epoch().count();
    number_shift_ = std::max(number_shift_, last_number_ - by_clock);
    return last_number_ = by_clock + number_shift_;
  }
  std::int64_t last_number_ = 0, number_shift_ = 0;
  std::map<Key, JobId> keys_;  // of live_ and history_
  std::set<JobId> locked_;
  std::map<JobId, Error> refused_;
  std::set<JobId> refused_claims_;
  std::map<std::string, Error> refused_new_;  // by biz_id
  std::set<JobId> held_jobs_;                 // locked by open Transactions, like the next two
  std::multiset<TypeId> held_types_;
  std::set<Key> held_keys_;
  std::vector<std::pair<ClaimToken, Row>> unflushed_;  // claims that a crash would lose, each with the row before it
  std::map<std::string, BizType> types_;
  std::uint64_t generation_ = 0;
};

// Ends a list with the job with which its attributes reach ClientStore::kMostBytesOfList. False: they do not reach it.
bool cut_to_bytes(std::vector<Job>& jobs);

}  // namespace tocsin
