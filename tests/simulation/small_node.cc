#include "simulation/small_node.h"

#include <algorithm>
#include <string_view>

namespace tocsin {

using namespace std::chrono_literals;

namespace {

constexpr WallTime kSmallBegin{1'767'225'600s};

}  // namespace

SmallGround::SmallGround(const SmallWorldBugs& planted)
    : bugs(planted), database([this] { return kSmallBegin + time.time_since_epoch(); }, 2) {
  database.bugs = planted.store;
  database.writer_lag = Duration(0);
  database.on_change = [this](const FakeDatabase::Change& change) { check(change); };
}

FaultPoint::Effect SmallGround::before(const FakeCall& call) {
  if (!call.is_write || next_write != NextWrite::arrives_later) return Effect::happens;
  next_write = NextWrite::happens;
  return Effect::late;
}

bool SmallGround::after(const FakeCall& call) {
  if (!call.is_write || next_write != NextWrite::loses_its_reply) return true;
  next_write = NextWrite::happens;
  return false;
}

void SmallGround::count(Counter what, std::int64_t) {
  if (what == Counter::audit_found) breaks("I1: only the audit found a job");
}

void SmallGround::check(const FakeDatabase::Change& change) {
  using Kind = FakeDatabase::Change::Kind;
  const JobId id = change.job.job_id;
  const auto claim = claims_.find(id);
  const bool has_lease = claim != claims_.end() && claim->second.lease_ends > database.now();
  switch (change.kind) {
    case Kind::claimed:
      if (has_lease) breaks("I4: claimed while the lease of another claim holds");
      if (database.now() < due_[id]) breaks("I2: claimed before its time");
      if (change.job.attempts > change.job.max_attempts) breaks("I6: more attempts than it may have");
      claims_[id] = {change.token, change.job.fire_at};
      return;
    case Kind::done:
    case Kind::dead:
    case Kind::retried:
    case Kind::released:
      if (claim == claims_.end() || claim->second.token != change.token) breaks("I5: a stale outcome was written");
      break;
    case Kind::cancelled:
      if (claim != claims_.end()) breaks("I3: a running job was cancelled");
      break;
    default:
      break;
  }
  claims_.erase(id);
  due_[id] = change.job.fire_at;
}

void SmallGround::on_start(const ClaimedJob& claimed) {
  const JobId id = claimed.job.job_id;
  if (cancelled.contains(id)) breaks("I3: started after an acknowledged cancel");
  if (uncommitted.contains(id)) breaks("I1: a job started that was never committed");
  if (!started_.insert(claimed.token).second) breaks("I4: one claim started twice");
  const auto claim = claims_.find(id);
  const bool is_current = claim != claims_.end() && claim->second.token == claimed.token;
  if (is_current && claim->second.lease_ends <= database.now()) breaks("I4: started after the end of its lease");
  if (!is_current && claim != claims_.end() && claim->second.lease_ends > database.now())
    breaks("I4: started under a claim that another one has replaced");
}

// As FakeJobStore; tells, when the bug is planted, of an absent store instead of a refused row.
class SmallNode::Store final : public JobStore {
 public:
  explicit Store(SmallGround& ground)
      : store_(ground.database, &ground, &ground), hides_(ground.bugs.hides_refused_row) {}
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) override {
    return store_.scan(ranges, search, mark);
  }
  Result<std::vector<ClaimedJob>> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                                        const ClaimTicket& ticket) override {
    return store_.claim(jobs, ttr, ticket);
  }
  Result<std::vector<ClaimedJob>> claim_due(Lane lane, DueSpan span, int limit, Duration ttr,
                                            const ClaimTicket& ticket) override {
    return store_.claim_due(lane, span, limit, ttr, ticket);
  }
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) override {
    return store_.claimed_with(ticket, jobs);
  }
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, Lane lane) override {
    return store_.claimed_with(ticket, lane);
  }
  Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) override {
    return store_.fire(jobs, node);
  }
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) override {
    return store_.fire_due(lane, span, limit, node);
  }
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) override {
    auto replies = store_.finish(requests, node);
    if (!replies && hides_) return Error{ErrorCode::unavailable, "away", ""};
    return replies;
  }
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) override {
    return store_.leases_left(leases);
  }
  Result<int> mark_dead(std::span<const JobId> jobs) override { return store_.mark_dead(jobs); }
  Result<int> drop_late(Lane lane, WallTime before, int limit, int passed, const std::string& node) override {
    return store_.drop_late(lane, before, limit, passed, node);
  }

 private:
  FakeJobStore store_;
  const bool hides_;
};

SmallNode::SmallNode(SmallGround& ground, int number, std::shared_ptr<const TypeCatalog> catalog)
    : ground_(ground), name_("node " + std::to_string(number)), catalog_(std::move(catalog)) {
  for (int i = 0; i < 4; ++i) stores_.push_back(std::make_unique<Store>(ground));
  start();
}

void SmallNode::start() {
  EngineConfig config;
  config.node = name_;
  config.async_claims = ground_.bugs.async_claims;
  config.sweep_interval = 8s;
  config.audit_interval = 60s;
  config.late_commit_margin = 2s;
  config.capacity = 64;
  config.max_running = 8;
  config.max_polls = 8;
  config.tick = 5ms;
  const EngineStores stores{*stores_[0], {stores_[1].get()}, *stores_[2], *stores_[3]};
  const std::uint64_t seed = std::hash<std::string>()(name_) + ++process_;
  engine_ = std::make_unique<Engine>(
      config, std::vector<Shard>{0, 1}, stores, [this](const BizType&) { return &handler_; }, ground_, seed);
  stages_ = engine_->stages();
  flags_.clear();
  std::vector<Waker*> wakers;
  for (std::size_t i = 0; i < stages_.size(); ++i) wakers.push_back(&flags_.emplace_back());
  engine_->set_wakers(wakers);
  next_.assign(stages_.size(), MonoTime{});
  engine_->set_catalog(catalog_);
}

void SmallNode::restart() {
  runs_.clear();
  engine_.reset();
  start();
}

bool SmallNode::writes(std::size_t stage) const {
  const std::string_view name = stages_[stage]->name();
  return name == "claimer" || name == "finisher" || name == "lease_reaper";
}

void SmallNode::step(std::size_t stage) {
  flags_[stage].is_set = false;
  next_[stage] = stages_[stage]->step(ground_.time);
}

void SmallNode::settle() {
  for (int i = 0; i < 10; ++i) {
    bool has_stepped = false;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const std::string_view name = stages_[stage]->name();
      if (!is_ready(stage) || (name != "timekeeper" && name != "poll_timeout_sweeper")) continue;
      step(stage);
      has_stepped = true;
    }
    if (!has_stepped) return;
  }
}

MonoTime SmallNode::next_time() const { return *std::ranges::min_element(next_); }

void SmallNode::answer(std::size_t which, Outcome outcome) {
  Run run = std::move(runs_[which]);
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(which));
  run.finish(std::move(outcome));
}

void SmallNode::write_state(std::ostream& out) const {
  const EngineShared& engine = engine_->shared();
  for (const Run& run : runs_) {
    const auto row = ground_.database.live().find(run.job);
    out << 'r' << run.job << (row != ground_.database.live().end() && row->second.token == run.token);
  }
  out << ' ' << engine.known.size() << ' ' << engine.candidates.size() << ' ' << engine.due.size() << ' '
      << engine.due.backlog_lanes() << ' ' << engine.claimed.size() << ' ' << engine.outcomes.size() << ' '
      << engine.expired.size() << ' ' << engine.limiter.running() << ';';
  for (std::size_t i = 0; i < stages_.size(); ++i)
    out << (is_ready(i) ? -1 : next_[i] == kWhenWoken ? -2 : (next_[i] - ground_.time).count() / 1000) << ' ';
}

}  // namespace tocsin
