// FakeBackend: a Backend (api/backend.h: what the REST interface asks of its node) in memory. Used by the tests of
// src/api. Each request is carried out at once, on the caller's thread, in a FakeDatabase. With n databases, shard s
// lives in database s modulo n, unless `moved` names another.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/backend.h"
#include "support/fake_bulk_store.h"
#include "support/fake_sessions.h"

namespace tocsin {

// Thread: owner only.
class FakeBackend final : public Backend, private FaultPoint {
 public:
  struct Hint {
    JobId job_id = 0;
    TypeId type_id = 0;
    WallTime fire_at{};
  };

  explicit FakeBackend(int shards = kDefaultShards, int databases = 1);

  // Adds a type to the registry and to this node's catalog.
  BizType add_type(const std::string& name, const std::string& handler_json = R"({"kind":"noop"})");
  // Claims a pending job, which is running then. Returns the token of the claim.
  ClaimToken claim(JobId job);
  // Claims a pending job and finishes it with this outcome.
  void finish(JobId job, FinishRequest::Kind kind, const std::string& message = "");

  // Settings: a test changes them before it calls the API.
  WallTime time = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12);
  bool is_full = false;                      // every queue is full: requests are refused
  std::optional<ErrorCode> fails;            // unavailable, conflict or in_doubt: the Error of every store call
  std::map<DatabaseId, ErrorCode> fails_at;  // the same for the store calls of one database; it wins over `fails`
  std::set<DatabaseId> full_at;              // databases whose queues are full
  bool are_many_waiting = false;             // post_waiting() refuses
  Duration queued{0};                        // Stores::queued of all work
  std::function<void()> before_work;         // called before the work of each request
  std::function<void()> relay;               // called once, by the next after_outboxes(): makes outbox entries jobs
  std::set<JobId> in_outbox;                 // after_outboxes() answers conflict: their outbox entries still wait
  std::set<std::string> keys_in_outbox;      // the same for all jobs of these biz_ids
  std::map<Shard, DatabaseId> moved;         // shards that live in another database than s modulo n
  std::size_t takes = SIZE_MAX;              // how many calls post() still accepts
  bool is_holding = false;                   // post() keeps work in `held` until run_held()
  std::vector<std::pair<DatabaseId, std::function<void(Stores&)>>> held;
  void run_held();
  std::set<DatabaseId> silent;       // databases known not to answer
  std::set<DatabaseId> unknown;      // databases that this node was not started with
  std::optional<Error> bad_handler;  // the answer of check_handler()
  Readiness state{true, false, {{"database", "ok"}}, {}};
  std::string hold;  // the answer of hold_reason()
  std::optional<int> running_jobs;
  std::vector<NodeInfo> members;
  std::vector<EndpointInfo> peers;
  std::vector<MoveInfo> moving;
  // Records: a test reads them after its calls.
  std::vector<Hint> hints;
  int reloads = 0;
  std::map<Counter, std::int64_t> counted;
  std::map<std::pair<TypeId, EventSink::Ending>, std::int64_t> lease_outcomes;
  std::vector<LeaseCall> leases;  // every call of lease(); each is answered at once with due jobs
  std::vector<JobId> ended_leases;
  bool forgets_leases = false;  // a setting: note_ended() and note_extended() throw std::bad_alloc
  std::vector<std::pair<TypeId, JobId>> extended_leases;
  FakeDatabase database;  // the control database
  std::vector<AuditEntry> recorded;
  FakeBulkStore bulks{database};
  BulkRunner bulk_runner{1, {{0, &bulks}}, {[](const Candidate&) {}}};
  std::vector<std::string> verbs;  // names of the store calls, in order
  int posted = 0;                  // work accepted by post(), post_read() and post_waiting()
  int posted_reads = 0;            // calls of post_read()
  int posted_lease_reads = 0;      // calls of read_leases(), which count as posted, too
  int posted_waiting = 0;          // calls of post_waiting(), refused ones (are_many_waiting) excluded
  int posted_type_retries = 0;     // calls of post_type_retry()
  FakeDatabase& database_at(DatabaseId database_id) {
    return database_id == 0 ? database : *others_.at(static_cast<std::size_t>(database_id - 1));
  }

  bool create(NewJob job, std::function<void(Result<CreateReply>)> done) override;
  bool cancel(JobId job, std::function<void(Result<CancelReply>)> done) override;
  bool cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) override;
  bool change(PendingChange change, std::function<void(Result<ChangeReply>)> done) override;
  bool retry(JobId job, std::function<void(Result<ChangeReply>)> done) override;
  bool get(JobId job, std::function<void(Result<std::optional<Job>>)> done) override;
  bool list_key(KeyQuery query, std::function<void(Result<KeyList>)> done) override;
  bool finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                     std::function<void(Result<std::vector<LeaseResult>>)> done) override;
  bool extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                     std::function<void(Result<std::vector<LeaseResult>>)> done) override;
  bool read_leases(DatabaseId database_id, std::vector<Lease> asked,
                   std::function<void(Result<std::vector<std::optional<LeasedJob>>>)> done) override;
  bool lease(LeaseCall call) override;
  void note_ended(std::span<const Lease> ended) override {
    if (forgets_leases) throw std::bad_alloc();
    for (const Lease& lease : ended) ended_leases.push_back(lease.job_id);
  }
  void note_extended(TypeId type, std::span<const Lease> extended, Duration) override {
    if (forgets_leases) throw std::bad_alloc();
    for (const Lease& lease : extended) extended_leases.emplace_back(type, lease.job_id);
  }
  bool are_leases_counted(TypeId) const override { return !is_cut_off_from_control; }
  bool is_cut_off_from_control = false;
  void count(Counter what, std::int64_t n) override { counted[what] += n; }
  void note_outcomes(TypeId type, EventSink::Ending ending, std::int64_t n) override {
    lease_outcomes[{type, ending}] += n;
  }
  bool post(DatabaseId database_id, std::function<void(Stores&)> work) override;
  bool post_read(DatabaseId database_id, std::function<void(Stores&)> work) override {
    ++posted_reads;
    return post(database_id, std::move(work));
  }
  void after_outboxes(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) override;
  void when_findable(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) override {
    after_outboxes(std::move(queries), std::move(proceed));
  }
  bool post_waiting(DatabaseId database_id, std::function<void(Stores&)> work) override {
    if (are_many_waiting) return false;
    ++posted_waiting;
    return post(database_id, std::move(work));
  }
  bool post_type_retry(DatabaseId database_id, std::function<void(Stores&)> work) override {
    ++posted_type_retries;
    return post(database_id, std::move(work));
  }
  bool post_bulk(std::function<void(BulkAccess&)> work) override;
  void record(AuditEntry entry) override { recorded.push_back(std::move(entry)); }
  void hint(JobId job, TypeId type, WallTime fire_at) override { hints.push_back({job, type, fire_at}); }
  std::shared_ptr<const TypeCatalog> types() const override { return catalog_; }
  Status reload_types(Stores& stores) override;
  void mirror_types(std::function<void()> done) override;
  Status make_types_known(Stores& stores) override;
  std::optional<Error> check_handler(const BizType&) const override { return bad_handler; }
  int shards() const override { return database.shards(); }
  std::string node_name() const override { return "node-1"; }
  std::vector<DatabaseId> database_ids() const override;
  DatabaseId database_of(Shard shard) const override {
    const auto it = moved.find(shard);
    return it == moved.end() ? shard % (1 + static_cast<DatabaseId>(others_.size())) : it->second;
  }
  std::string database_name(DatabaseId database_id) const override {
    return database_id == 0 ? "tocsin" : "db" + std::to_string(database_id);
  }
  std::string database_title(DatabaseId database_id) const override {
    return database_name(database_id) + " (db.example:5432/" + database_name(database_id) + ")";
  }
  std::optional<Error> unavailable_reason(DatabaseId database_id) const override;
  bool is_answering(DatabaseId database_id) const override {
    return !silent.contains(database_id) && !unknown.contains(database_id);
  }
  WallTime now() const override { return time; }
  LatencySummary lateness() const override { return {3, 1.5, 2.5, 3.5, 4.5}; }
  Readiness readiness() const override { return state; }
  std::string metrics_text() const override { return "# TYPE tocsin_up gauge\ntocsin_up 1\n"; }
  std::string hold_reason(const Job&) const override { return hold; }
  std::optional<int> running(TypeId) const override { return running_jobs; }
  std::vector<NodeInfo> nodes() const override { return members; }
  std::vector<EndpointInfo> endpoints() const override { return peers; }
  std::vector<MoveInfo> moves() const override { return moving; }
  std::string shard_owner(Shard) const override { return node_name(); }

 private:
  Effect before(const FakeCall& call) override;
  void working(const FakeCall&) override {}
  bool after(const FakeCall&) override;
  std::optional<ErrorCode> failure() const;
  void keep(std::function<void()>) override {}

  template <class Reply>
  bool ask(Shard shard, const std::function<void(Result<Reply>)>& done,
           const std::function<Result<Reply>(ClientStore&)>& verb);
  // Calls `work` with stores of this database, whose calls fail as `fails` and `fails_at` say.
  void with(DatabaseId database_id, const std::function<void(Stores&)>& work);

  FakeJobStore store_{database, nullptr, this};
  std::vector<std::unique_ptr<FakeDatabase>> others_;
  DatabaseId asked_ = 0;  // the database whose stores are working
  std::shared_ptr<const TypeCatalog> catalog_ = std::make_shared<TypeCatalog>();
};

}  // namespace tocsin
