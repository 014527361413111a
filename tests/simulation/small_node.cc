#include "simulation/small_node.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

namespace tocsin {

using namespace std::chrono_literals;

namespace {

constexpr WallTime kSmallBegin{1'767'225'600s};

// max(): one of them is a bound and no time.
Duration between(WallTime from, WallTime to) {
  return from == WallTime::min() || to == WallTime::max() ? Duration::max() : to - from;
}

}  // namespace

SmallGround::SmallGround(const SmallWorldBugs& planted)
    : bugs(planted),
      database([this] { return kSmallBegin + time.time_since_epoch(); }, 2),
      business(any_business({.ignores_token = planted.calls_lost_claims})) {
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
  if (change.kind == Kind::done && are_in_database && !effects_.contains(id)) breaks("I5: done without the effect");
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

void SmallGround::on_call(const ClaimedJob& claimed, const Outcome& outcome) {
  const JobId id = claimed.job.job_id;
  if (cancelled.contains(id)) breaks("I3: a function was called after an acknowledged cancel");
  const bool is_done = outcome.kind == Outcome::Kind::done;
  if (is_done && !effects_.insert(id).second) breaks("I5: a function had its effect twice");
  const auto claim = claims_.find(id);
  if (claim == claims_.end() || claim->second.token != claimed.token)
    breaks("I5: a function was called under a lost claim");
}

void SmallGround::write_claim(std::ostream& out, const Lease& claim) const {
  const auto row = database.live().find(claim.job_id);
  out << claim.job_id << (row != database.live().end() && row->second.token == claim.token ? '+' : '-');
}

void SmallGround::write_call(std::ostream& out, const SmallCall& written) const {
  out << written.words << ' ';
  for (const Lease& claim : written.claims) write_claim(out, claim);
}

void SmallGround::write_state(std::ostream& out) const {
  for (const LateWrite& late : on_their_way) {
    if (late.generation == database.generation()) write_call(out, late.call);
    out << ';';
  }
}

// As FakeJobStore; tells, when the bug is planted, of an absent store instead of a refused row. Notes what its stage
// has in memory.
class SmallNode::Store final : public JobStore {
 public:
  explicit Store(SmallNode& node) : node_(node), ground_(node.ground_), store_(ground_.database, &ground_, &ground_) {}
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) override {
    auto reply = noted({"scan", {}}, [&] { return store_.scan(ranges, search, mark); });
    if (!reply) return reply;
    ranges_.assign(ranges.begin(), ranges.end());
    scanned_ = ground_.database.now();
    connection_ = reply->connection;
    for (const auto& rows : reply->rows)
      for (const ScanReply::Row& row : rows) node_.seen_[row.candidate.job_id] = {row.candidate.fire_at};
    return reply;
  }
  Result<Claims> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                       const ClaimTicket& ticket) override {
    std::string words = node_.name_ + " claims";
    for (const Candidate& job : jobs) words += ' ' + std::to_string(job.job_id), ++node_.seen_[job.job_id].misses;
    asked_ = ground_.time;
    return held(noted({words, {}}, [&] { return store_.claim(jobs, ttr, ticket); }));
  }
  Result<Claims> claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket) override {
    const std::string words = node_.name_ + " claims in " + std::to_string(lane.shard);
    asked_ = ground_.time;
    return held(noted({words, {}}, [&] { return store_.claim_due(lane, span, limit, ttr, ticket); }));
  }
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) override {
    return held(noted({"", {}}, [&] { return store_.claimed_with(ticket, jobs); }));
  }
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, Lane lane) override {
    return held(noted({"", {}}, [&] { return store_.claimed_with(ticket, lane); }));
  }
  Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) override {
    return store_.fire(jobs, node);
  }
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) override {
    return store_.fire_due(lane, span, limit, node);
  }
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) override {
    SmallCall call;
    for (const FinishRequest& request : requests) {
      call.words += std::to_string(static_cast<int>(request.kind)) + ' ' + std::to_string(request.delay.count()) + ' ';
      call.claims.push_back({request.job_id, request.token});
    }
    auto replies = noted(std::move(call), [&] { return store_.finish(requests, node); });
    if (!replies && ground_.bugs.hides_refused_row) return Error{ErrorCode::unavailable, "away", ""};
    for (std::size_t i = 0; replies && i < requests.size(); ++i)
      if ((*replies)[i] != FinishReply::busy) node_.set_step(requests[i].token, '\0');
    return replies;
  }
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) override {
    return store_.leases_left(leases);
  }
  Result<int> mark_dead(std::span<const JobId> jobs) override {
    std::string words = "dead";
    for (const JobId job : jobs) words += ' ' + std::to_string(job);
    return noted({words, {}}, [&] { return store_.mark_dead(jobs); });
  }
  Result<int> drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node) override {
    return store_.drop_too_late(lane, before, limit, passed, node);
  }

  // The last call, if it failed: its stage repeats or looks up what it asked. Where the scans of the node stand.
  void write_state(std::ostream& out) const {
    out << failures_ << ' ';
    if (failures_ > 0) ground_.write_call(out, call_), out << ground_.since(asked_).count();
    for (const ScanRange& range : ranges_)
      out << range.lane.shard << ' ' << between(range.after, scanned_).count() << ' ' << range.after_id << ' '
          << between(scanned_, range.before).count() << ' ';
    out << (ranges_.empty() || connection_ == ground_.database.generation()) << ';';
  }

 private:
  template <class Call>
  std::invoke_result_t<const Call&> noted(SmallCall what, const Call& call) {
    if (!what.words.empty()) call_ = ground_.under_way = std::move(what);
    auto reply = call();
    failures_ = reply ? 0 : failures_ + 1;
    return reply;
  }
  Result<Claims> held(Result<Claims> claims) {
    if (claims) node_.hold(claims->won, asked_);
    return claims;
  }
  Result<std::vector<ClaimedJob>> held(Result<std::vector<ClaimedJob>> won) {
    if (won) node_.hold(*won, asked_);
    return won;
  }

  SmallNode& node_;
  SmallGround& ground_;
  FakeJobStore store_;
  SmallCall call_;
  int failures_ = 0;
  MonoTime asked_{};
  std::vector<ScanRange> ranges_;
  WallTime scanned_{};
  std::uint64_t connection_ = 0;
};

SmallNode::SmallNode(SmallGround& ground, int number, std::shared_ptr<const TypeCatalog> catalog)
    : ground_(ground), name_("node " + std::to_string(number)), catalog_(std::move(catalog)) {
  start();
}

SmallNode::~SmallNode() = default;

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
  stores_.clear();
  for (int i = 0; i < 4; ++i) stores_.push_back(std::make_unique<Store>(*this));
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
  steps_.assign(stages_.size(), 0);
  engine_->set_catalog(catalog_);
}

void SmallNode::hint(const Candidate& job) {
  if (engine_->hint(job)) seen_[job.job_id].hinted = job.fire_at;
}

void SmallNode::restart() {
  runs_.clear();
  held_.clear();
  seen_.clear();
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
  steps_[stage] = is_ready(stage) ? steps_[stage] + 1 : 0;
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
  set_step(run.claimed.token, outcome.kind == Outcome::Kind::done ? 'd' : 'r');
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(which));
  run.finish(std::move(outcome));
}

bool SmallNode::call(std::size_t which, const Outcome& outcome, SmallGround::NextWrite effect) {
  const Run run = std::move(runs_[which]);
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(which));
  const ClaimedJob& claimed = run.claimed;
  const FunctionCall of_job{claimed.job.job_id, claimed.token};
  ground_.under_way = {name_ + " calls", {{claimed.job.job_id, claimed.token}}};
  ground_.next_write = effect;
  FakeFunctionStore store(ground_.database, ground_.business, &ground_, &ground_);
  const auto judge = [&ground = ground_, claimed, outcome](std::size_t, const auto&) -> Result<FinishRequest> {
    ground.on_call(claimed, outcome);
    return request_for(claimed, outcome);
  };
  const bool raises = outcome.kind == Outcome::Kind::retry;
  const Outcome ended = outcome_of(store.run(raises ? kRaises : kReturns, {&of_job, 1}, Duration(0), judge, name_));
  // The finisher writes nothing more.
  set_step(claimed.token, ended.is_written ? '\0' : ended.kind == Outcome::Kind::retry ? 'r' : 'n');
  run.finish(ended);
  return std::exchange(ground_.next_write, SmallGround::NextWrite::happens) == SmallGround::NextWrite::happens;
}

void SmallNode::hold(const std::vector<ClaimedJob>& won, MonoTime asked) {
  for (const ClaimedJob& claimed : won) {
    held_.push_back({{claimed.job.job_id, claimed.token}, asked, 'c'});
    seen_[claimed.job.job_id].misses = 0;
  }
}

// '\0': its outcome is written.
void SmallNode::set_step(ClaimToken token, char step) {
  if (step == '\0') std::erase_if(held_, [&](const Held& held) { return held.claim.token == token; });
  for (Held& held : held_)
    if (held.claim.token == token) held.step = step;
}

void SmallNode::write_state(std::ostream& out) const {
  const EngineShared& engine = engine_->shared();
  for (const Held& held : held_) {
    ground_.write_claim(out, held.claim);
    out << held.step << ground_.since(held.asked).count() << ' ';
  }
  for (const auto& [job, row] : seen_)
    if (engine.known.contains(job))
      out << 'k' << job << ' ' << (row.fire_at - ground_.database.now()).count() << ' ' << row.misses << ' '
          << (row.hinted == WallTime{} ? 0 : (row.hinted - ground_.database.now()).count()) << ' ';
  for (const auto& store : stores_) store->write_state(out);
  out << engine.known.size() << ' ' << engine.candidates.size() << ' ' << engine.due.size() << ' '
      << engine.due.backlog_lanes() << ' ' << engine.claimed.size() << ' ' << engine.outcomes.size() << ' '
      << engine.expired.size() << ' ' << engine.returned.size() << ' ' << engine.limiter.running() << ';';
  for (std::size_t i = 0; i < stages_.size(); ++i)
    out << (is_ready(i)              ? -1
            : next_[i] == kWhenWoken ? -2
                                     : (next_[i] - ground_.time).count())
        << ' ' << steps_[i] << ' ';
}

}  // namespace tocsin
