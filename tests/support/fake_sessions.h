// The stores of src/ports over a FakeDatabase: a JobStore, ClientStore, ReportStore and so on, each a session with the
// database in memory. A FaultPoint decides whether a call fails, hangs or loses its answer.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "support/fake_database.h"

namespace tocsin {

// One call of a session, as a FaultPoint sees it.
struct FakeCall {
  std::string_view verb;
  bool is_write = false;
  int session = 0;
};

// Decides what happens to each call. A call takes these steps: before(); the database reads its clock; working(); the
// whole effect in one instant; after(). before(), working() and after() may suspend the caller: the simulator switches
// fibers there. A call between before() and after() is lost if a standby takes over. Thread: the sessions'.
class FaultPoint {
 public:
  enum class Effect {
    happens,
    unavailable,  // the effect does not happen; Error unavailable
    conflict,     // the effect does not happen; Error conflict, as after a deadlock or a lock time-out
    late,         // writes only: Error in_doubt now; the effect happens when the function given to keep() is called
  };
  virtual ~FaultPoint() = default;
  virtual Effect before(const FakeCall& call) = 0;
  virtual void working(const FakeCall& call) = 0;
  // False: the effect happened, and the answer is lost.
  virtual bool after(const FakeCall& call) = 0;
  // Takes the effect of a `late` call, to be called later.
  virtual void keep(std::function<void()> effect) = 0;
};

// Base of the stores: call() passes the fault point. `clock`: the caller's, for local_now(). `faults`: null: no call
// fails. `session`: number of the session, for FakeCall. Thread: owner only.
class FakeSession {
 public:
  explicit FakeSession(FakeDatabase& database, const Clock* clock = nullptr, FaultPoint* faults = nullptr,
                       int session = 0)
      : database_(database), clock_(clock), faults_(faults), session_(session) {}

 protected:
  template <class T, class Effect>
  Result<T> call(std::string_view verb, bool is_write, Effect effect);

  MonoTime local_now() const { return clock_ ? clock_->now() : MonoTime{}; }

  FakeDatabase& database_;

 private:
  const Clock* clock_;
  FaultPoint* faults_;
  int session_;
};

// `effect`: called with the database's clock. It must own what it uses, because a late effect runs after the call.
template <class T, class Effect>
Result<T> FakeSession::call(std::string_view verb, bool is_write, Effect effect) {
  if (!faults_) return effect(database_.now());
  const FakeCall call{verb, is_write, session_};
  const Error lost{is_write ? ErrorCode::in_doubt : ErrorCode::unavailable, "the answer was lost", ""};
  switch (faults_->before(call)) {
    case FaultPoint::Effect::happens:
      break;
    case FaultPoint::Effect::unavailable:
      return Error{ErrorCode::unavailable, "the database is away", ""};
    case FaultPoint::Effect::conflict:
      return Error{ErrorCode::conflict, "a deadlock", ""};
    case FaultPoint::Effect::late:
      faults_->keep([effect, &database = database_, generation = database_.generation()]() mutable {
        if (generation == database.generation()) static_cast<void>(effect(database.now()));
      });
      static_cast<void>(faults_->after(call));
      return lost;
  }
  const WallTime now = database_.now();
  const auto generation = database_.generation();
  std::optional<FakeDatabase::Writer> writer;
  if (is_write) writer.emplace(database_, now);
  faults_->working(call);
  if (generation != database_.generation()) return lost;  // it was at work on a server that is no more
  Result<T> reply = effect(now);
  if (!faults_->after(call) || generation != database_.generation()) return lost;
  return reply;
}

class FakeJobStore : public JobStore, private FakeSession {
 public:
  using FakeSession::FakeSession;
  using JobStore::scan;
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) override;
  Result<Claims> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                       const ClaimTicket& ticket) override;
  Result<Claims> claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, Lane lane) override;
  Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) override;
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) override;
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) override;
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) override;
  Result<int> mark_dead(std::span<const JobId> jobs) override;
  Result<int> drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node) override;
};

class FakeClientStore final : public ClientStore, private FakeSession {
 public:
  using FakeSession::FakeSession;
  Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) override;
  Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs, LockWait wait) override;
  Result<CancelAllReply> cancel_all(const std::string& biz_id, std::optional<TypeId> type) override;
  Result<ChangeBatchReply> change_together(const ChangeBatch& batch) override;
  Result<std::vector<std::optional<Job>>> find(std::span<const JobId> jobs) override;
  Result<std::vector<KeyList>> list_keys(std::span<const KeyQuery> queries) override;
  Result<std::vector<Result<ChangeReply>>> retry_each(std::span<const JobId> jobs) override;
  Result<int> retry_many(const RetryMany& request) override;
  Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) override;
  Result<std::vector<LeaseResult>> finish_leased(std::span<const FinishRequest> requests,
                                                 const std::string& node) override;
  Result<std::vector<LeaseResult>> extend(std::span<const Extension> extensions) override;
};

class FakeReportStore final : public ReportStore, private FakeSession {
 public:
  using FakeSession::FakeSession;
  Result<std::optional<Job>> find(JobId job) override;
  Result<JobList> list(const JobFilter& filter) override;
  Result<std::vector<TypeCount>> counts() override;
  Result<std::int64_t> overdue(int at_most) override;
  Result<std::vector<std::int64_t>> due_soon(std::span<const Shard> shards, Duration within, int at_most,
                                             bool is_overdue_counted) override;
  Result<DatabaseInfo> info() override;
  Result<std::vector<std::string>> report(const ReportQuery& query) override;
};

class FakeTypeStore final : public TypeStore, private FakeSession {
 public:
  using FakeSession::FakeSession;
  Result<std::vector<BizType>> list(Removed) override;
  Result<std::optional<BizType>> find(const std::string& name) override;
  Result<Changes> changed_since(WallTime time) override;
  Result<bool> has_any(std::span<const std::string> names, Removed removed) override;
  using TypeStore::put;
  Result<PutReply> put(const BizType& type, std::optional<WallTime> version) override;
  using TypeStore::remove;
  Result<RemoveReply> remove(const std::string& name, Registry registry, std::optional<WallTime> version) override;
  Status renew(const std::string& name) override;
  Result<std::optional<BizType>> set_paused(const std::string& name, bool paused,
                                            std::optional<WallTime> until) override;
  Status mirror(std::span<const BizType> types) override;
};

class FakePermitStore final : public PermitStore, private FakeSession {
 public:
  using FakeSession::FakeSession;
  Result<PermitReply> renew(const PermitBeat& beat) override;
  Result<int> take_over(NodeId node, std::int64_t number, TypeId type, int n) override;
  Status return_all(NodeId node) override;
};

class FakeMemberStore final : public MemberStore, private FakeSession {
 public:
  using FakeSession::FakeSession;
  Result<BeatReply> beat(const Beat& beat) override;
  Result<bool> replace_map(std::int64_t known, const std::vector<NodeId>& owners) override;
  Status leave(NodeId id) override;
};

}  // namespace tocsin
