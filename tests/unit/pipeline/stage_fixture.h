// One stage alone: the shared objects of an engine, a store that answers as told, and a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/stage.h"
#include "pipeline/engine_shared.h"
#include "ports/job_store.h"

namespace tocsin {

using namespace std::chrono_literals;

inline constexpr WallTime kStart{1'767'225'600s};  // what the database shows when the local clock shows zero

inline Error unavailable() { return {ErrorCode::unavailable, "no connection", ""}; }
inline Error in_doubt() { return {ErrorCode::in_doubt, "connection lost", ""}; }

// Remembers what a stage tells.
// Thread: owner only.
class EventLog final : public EventSink {
 public:
  void count(Counter what, std::int64_t n) override { counts_[what] += n; }
  void started(TypeId, Duration lateness) override { lateness_.push_back(lateness); }
  void ended_elsewhere(TypeId type, Ending ending, std::int64_t n) override {
    if (ending == Ending::done) done_elsewhere_[type] += n;
  }
  void failed(std::string_view, const Error&) override { ++failures_; }

  std::int64_t operator[](Counter what) const {
    const auto it = counts_.find(what);
    return it == counts_.end() ? 0 : it->second;
  }
  int failures() const { return failures_; }
  const std::vector<Duration>& lateness() const { return lateness_; }
  const std::map<TypeId, std::int64_t>& done_elsewhere() const { return done_elsewhere_; }

 private:
  std::map<Counter, std::int64_t> counts_;
  std::vector<Duration> lateness_;
  std::map<TypeId, std::int64_t> done_elsewhere_;
  int failures_ = 0;
};

// Every verb is a function of the test; a verb it did not expect fails the test.
class ScriptedStore final : public JobStore {
 public:
  using Claimed = Result<std::vector<ClaimedJob>>;
  using FiredJobs = Result<std::vector<Fired>>;

  std::function<Result<ScanReply>(std::span<const ScanRange>, const LaneSearch&)> on_scan;
  std::function<Claimed(std::span<const JobId>, std::span<const Duration>, const ClaimTicket&)> on_claim;
  std::function<Claimed(Lane, DueSpan, int, Duration, const ClaimTicket&)> on_claim_due;
  std::function<Claimed(const ClaimTicket&, std::span<const JobId>)> on_claimed_with;
  std::function<Claimed(const ClaimTicket&, Lane)> on_claimed_with_lane;
  std::function<FiredJobs(std::span<const JobId>)> on_fire;
  std::function<FiredJobs(Lane, DueSpan, int)> on_fire_due;
  std::function<Result<std::vector<FinishReply>>(std::span<const FinishRequest>)> on_finish;
  std::function<Result<std::vector<std::optional<Duration>>>(std::span<const Lease>)> on_leases_left;
  std::function<Result<int>(std::span<const JobId>)> on_mark_dead;
  std::function<Result<int>(Lane, WallTime, int, int)> on_drop_too_late;
  Claims claims;  // what the next claim tells beside the jobs won
  int calls = 0;
  WriterMark last_mark = WriterMark::none;  // of the last scan
  Duration time_limit{0};                   // that the last call had

  void answer_within(Duration longest) override { time_limit = longest; }
  using JobStore::scan;
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) override {
    last_mark = mark;
    return call(on_scan, ranges, search);
  }
  Result<Claims> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                       const ClaimTicket& ticket) override {
    return claims_of(call(on_claim, ids_of(jobs), ttr, ticket));
  }
  Result<Claims> claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket) override {
    return claims_of(call(on_claim_due, lane, span, limit, ttr, ticket));
  }
  Claimed claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) override {
    return call(on_claimed_with, ticket, jobs);
  }
  Claimed claimed_with(const ClaimTicket& ticket, Lane lane) override {
    return call(on_claimed_with_lane, ticket, lane);
  }
  FiredJobs fire(std::span<const Candidate> jobs, const std::string&) override { return call(on_fire, ids_of(jobs)); }
  FiredJobs fire_due(Lane lane, DueSpan span, int limit, const std::string&) override {
    return call(on_fire_due, lane, span, limit);
  }
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string&) override {
    return call(on_finish, requests);
  }
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) override {
    return call(on_leases_left, leases);
  }
  Result<int> mark_dead(std::span<const JobId> jobs) override { return call(on_mark_dead, jobs); }
  Result<int> drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string&) override {
    return call(on_drop_too_late, lane, before, limit, passed);
  }

 private:
  Result<Claims> claims_of(Claimed won) {
    if (!won) return won.error();
    claims.won = std::move(*won);
    return std::exchange(claims, {});
  }
  static std::vector<JobId> ids_of(std::span<const Candidate> jobs) {
    std::vector<JobId> ids;
    for (const Candidate& each : jobs) ids.push_back(each.job_id);
    return ids;
  }
  template <class Reply, class... Params, class... Args>
  Reply call(const std::function<Reply(Params...)>& verb, Args&&... args) {
    ++calls;
    if (verb) return verb(std::forward<Args>(args)...);
    ADD_FAILURE() << "an unexpected store call";
    return unavailable();
  }
};

inline BizType biz_type(TypeId id, const std::string& kind = "webhook") {
  BizType type;
  type.type_id = id;
  type.name = "type." + std::to_string(id);
  type.handler_kind = kind;
  type.backoff.jitter = 0;
  return type;
}

// A start pool whose figures the test sets.
struct TestPool final : StartPool {
  explicit TestPool(std::size_t n, double per_s = std::numeric_limits<double>::infinity()) : slots(n), rate(per_s) {}
  std::size_t capacity() const override { return slots; }
  double starts_per_s() const override { return rate; }
  std::atomic<std::size_t> slots;
  std::atomic<double> rate;
};
inline std::shared_ptr<TestPool> pool_of(std::size_t n) { return std::make_shared<TestPool>(n); }

class StageFixture : public ::testing::Test {
 protected:
  // REQUIRES: before the first use of shared().
  EngineConfig config;
  std::vector<Shard> shards{0};
  EventLog events;
  ScriptedStore store;
  MonoTime now{};

  EngineShared& shared() {
    if (!shared_) shared_.emplace(config, shards, events);
    return *shared_;
  }
  void set_types(std::vector<BizType> types) {
    shared().catalog.set(std::make_shared<const TypeCatalog>(std::move(types)));
  }
  WallTime db_now() const { return kStart + now.time_since_epoch() + stepped_; }
  // Lets the engine know the database's clock exactly.
  void know_time() { shared().db_clock.sample(now, now, db_now()); }
  // Sets the database's clock.
  void step_database_clock(Duration by) { stepped_ += by; }
  using Rows = std::set<std::pair<WallTime, JobId>>;  // by due time
  // Scans read the first of these rows of the type that the range holds.
  void scan_from(const Rows& rows, TypeId type) {
    store.on_scan = [&rows, type](std::span<const ScanRange> ranges, const LaneSearch&) {
      ScanReply reply;
      const auto first = rows.upper_bound({ranges[0].after, ranges[0].after_id});
      reply.rows.push_back({{{first->second, type, first->first}, false}});
      return reply;
    };
  }
  // Puts jobs where the scanner would have put them by the time they are due.
  void push_due(const std::vector<Candidate>& jobs) {
    for (const Candidate& job : jobs) shared().known.add(job.job_id, job.type_id);
    shared().due.push(jobs);
  }
  ClaimedJob claimed(JobId id, TypeId type, int attempts = 1) const {
    ClaimedJob job;
    job.job.job_id = id;
    job.job.type_id = type;
    job.job.status = JobStatus::running;
    job.job.action_time = db_now() - 7ms;
    job.job.gmt_modified = db_now();
    job.job.started_at = attempts > 1 ? db_now() - 1ms : db_now();
    job.job.attempts = attempts;
    job.token = id * 10;
    job.lease_deadline = now + 30s;
    return job;
  }

 private:
  std::optional<EngineShared> shared_;
  Duration stepped_{0};
};

}  // namespace tocsin
