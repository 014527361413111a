// One database in memory, as honest as the contracts in include/tocsin say: the ground of the contract suite and of the
// simulator.
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
#include "ports/type_store.h"
#include "support/fake_bugs.h"
#include "support/fake_members.h"
#include "support/fake_permits.h"

namespace tocsin {

// The data members are the tables, and what a test has told it to do. Thread: owner only. Every verb of a session is a
// method here that takes the database's clock as the statement read it.
class FakeDatabase {
 public:
  using WallClock = std::function<WallTime()>;
  // How far the oldest transaction that is open lies behind now, at least: others than ours keep theirs open.
  Duration writer_lag = std::chrono::seconds(10);
  explicit FakeDatabase(WallClock clock, int shards = kDefaultShards);

  struct Row {
    Job job;
    ClaimToken token = 0;
    std::string body;  // what an idempotent repeat must match
  };

  // One committed change of one row; `job` is the row after it, `token` what the claim drew or the finish came with.
  struct Change {
    enum class Kind {
      created,
      replaced,
      rescheduled,
      hastened,
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
      claim_lost  // a crash took the claim back; `token` is that of the claim before it, if the row was running
    };
    Kind kind;
    const Job& job;
    ClaimToken token;
    WallTime db_now;
    bool is_durable = true;  // claims: they waited for the disk
  };
  std::function<void(const Change&)> on_change;
  FakeBugs bugs;
  FakeMembers members;
  // What reports answer, and what they were asked.
  std::map<Report, std::vector<std::string>> report_rows;
  std::optional<Error> report_error;  // instead of rows
  std::vector<ReportQuery> reports_asked;
  FakePermits permits;  // of the types of the registry, unless told otherwise

  WallTime now() const { return clock_(); }
  int shards() const { return shards_; }
  const std::map<JobId, Row>& live() const { return live_; }
  const std::map<JobId, Row>& history() const { return history_; }

  // A transaction that writes and got its number at `began`: scans know that its rows are still to come. One that reads
  // its clock before it opens its Writer breaks the contract of ScanReply.
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

  // A row locked by another open transaction: claims skip it, finishes are busy, everything else is a conflict.
  void lock(JobId job) { locked_.insert(job); }
  void unlock(JobId job) { locked_.erase(job); }
  bool is_locked(JobId job) const {
    return !bugs.ignores_locks && (locked_.contains(job) || held_jobs_.contains(job) || frozen.contains(shard_of(job)));
  }

  // Moving shards. A frozen one keeps its rows as they are: as if another transaction had locked them. Copies come and
  // go as by logical replication, without a word to on_change.
  std::set<Shard> frozen;
  std::function<bool(Shard)> lives_here;  // else its creates are refused; null: every shard lives here
  struct Copy {
    Row row;
    bool is_live = true;
  };
  std::optional<Copy> copy_of(JobId job) const;
  void put_copy(const Copy& copy);
  void drop_copy(JobId job);
  // A job from the outbox of another database, and whether another one has its key.
  void insert_with_id(JobId id, const std::string& biz_id, TypeId type, WallTime action_time,
                      const std::optional<std::string>& key, WallTime created, WallTime now);
  std::optional<JobId> job_with_key(const std::string& biz_id, TypeId type,
                                    const std::optional<std::string>& key) const;
  bool has_other_writers() const { return writers_.size() > 1; }  // than the one that asks

  // What the engine writes to end the job is refused, with all that is written beside it: as for a value that no table
  // takes.
  void refuse(JobId job) { refused_.insert(job); }
  void accept(JobId job) { refused_.erase(job); }
  void refuse_nothing() { refused_.clear(); }
  bool refuses(JobId job) const { return refused_.contains(job); }
  bool refuses_any(const std::vector<JobId>& jobs) const {
    return std::any_of(jobs.begin(), jobs.end(), [&](JobId job) { return refuses(job); });
  }
  static Error refused_row() { return {ErrorCode::invalid, "a row that no table takes", ""}; }
  // As after a restore: a finished record has the id of another job; the sequence begins anew.
  void give_id(JobId finished, JobId id);
  void begin_ids_anew();
  void begin_ids_at(std::int64_t sequence) { last_sequence_ = sequence; }  // those of several databases never meet
  // JobStore
  ScanReply scan(const std::vector<ScanRange>& ranges, const LaneSearch& search, WriterMark mark, WallTime now);
  std::vector<ClaimedJob> claim(const std::vector<Candidate>& jobs, const std::vector<Duration>& ttr,
                                const ClaimTicket& ticket, WallTime now);
  std::vector<ClaimedJob> claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket,
                                    WallTime now);
  std::vector<ClaimedJob> claimed_with(const ClaimTicket& ticket, const std::vector<JobId>& jobs) const;
  std::vector<ClaimedJob> claimed_with(const ClaimTicket& ticket, Lane lane) const;
  std::vector<Fired> fire(const std::vector<Candidate>& jobs, const std::string& node, WallTime now);
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node, WallTime now);
  std::vector<FinishReply> finish(const std::vector<FinishRequest>& requests, const std::string& node, WallTime now);
  int mark_dead(const std::vector<JobId>& jobs, WallTime now);
  Result<int> drop_late(Lane lane, WallTime before, int limit, int passed, const std::string& node, WallTime now);

  // A standby's state: what it has of everything up to a moment. Ids that are lost with their jobs come again.
  struct Snapshot {
    std::int64_t last_sequence = 0;
    std::map<JobId, Row> live, history;
    std::map<std::string, BizType> types;
    FakeMembers members;
    FakePermits permits;
  };
  Snapshot snapshot() const;
  // The standby takes over: nothing of what came since is there, no transaction is open, and no session is connected.
  void restore(const Snapshot& standby);
  std::uint64_t generation() const { return generation_; }  // grows with both: calls that began before have no effect
  // Crash and recovery: no sessions, no claims since the last change that waited for the disk. Returns their jobs.
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
  int retry_many(const ClientStore::RetryMany& request, WallTime now);
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
  Live find_candidate(const Candidate& job);  // end(): there is none of this id and type
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
  CreateReply create_one(const NewJob& job, Undo& undo, WallTime now);
  CreateReply answer_with_existing(const NewJob& job, Live row, Undo& undo, WallTime now);
  void roll_back(const Undo& undo);
  bool holds(const Lease& lease, WallTime now) const;
  CancelReply cancel_one(JobId job, WallTime now);
  KeyCancelReply cancel_key(const KeyCancel& key, WallTime now);
  ChangeReply refusal(JobId job) const;

  WallClock clock_;
  const int shards_;
  std::int64_t last_sequence_ = 0;
  TypeId last_type_ = 0;
  std::map<JobId, Row> live_;
  std::map<JobId, Row> history_;
  std::set<std::tuple<Lane, WallTime, JobId>> due_;  // of live_
  std::multiset<std::int64_t> writers_;              // the numbers of open transactions
  // Transactions are numbered by the microsecond in which they begin. A clock that is set back makes no number smaller.
  std::int64_t transaction_number(WallTime now) {
    const std::int64_t by_clock = now.time_since_epoch().count();
    number_shift_ = std::max(number_shift_, last_number_ - by_clock);
    return last_number_ = by_clock + number_shift_;
  }
  std::int64_t last_number_ = 0, number_shift_ = 0;
  std::map<Key, JobId> keys_;  // of live_ and history_
  std::set<JobId> locked_, refused_;
  std::set<JobId> held_jobs_;  // by open transactions, as these
  std::multiset<TypeId> held_types_;
  std::set<Key> held_keys_;
  std::vector<std::pair<ClaimToken, Row>> unflushed_;  // claims, each with the row as it was before
  std::map<std::string, BizType> types_;
  std::uint64_t generation_ = 0;
};

}  // namespace tocsin
