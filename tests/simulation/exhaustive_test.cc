// Every order of events in a small world: one node with its real stages, one database, two jobs that are due, and a
// budget of troubles. Where random lives go far, this goes everywhere near the start.
//   TOCSIN_SIM_DEPTH=n      events in one order (default 14, and 4 where long times pass)
//   TOCSIN_SIM_STATES=n     states at most (default 40000)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/waker.h"
#include "pipeline/engine.h"
#include "support/fake_sessions.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// Mistakes that the search must find without being told where.
struct SmallWorldBugs {
  bool async_claims = false;             // the claim does not wait for the disk
  bool hides_whose_fault_it_is = false;  // what a store refuses for one row looks like a store that is away
  bool cancels_running = false;          // FakeBugs
  bool finish_ignores_token = false;     // FakeBugs
  bool answers_twice = false;            // FakeBugs
};

// Each may happen so often.
struct Budget {
  int crashes = 1, cancels = 1, lost_replies = 1, retries = 1, moves = 1, refusals = 1, pairs = 1;
  int transactions = 0, waits = 0;
};

// A business's transaction stays open for as long as it likes, beside a lane that always has something due soon.
constexpr Budget kBesideATransaction{.crashes = 0,
                                     .cancels = 0,
                                     .lost_replies = 0,
                                     .retries = 0,
                                     .moves = 0,
                                     .refusals = 0,
                                     .pairs = 0,
                                     .transactions = 1,
                                     .waits = 2};

class Flag final : public Waker {
 public:
  void wake() override { is_set = true; }
  bool is_set = true;
};

class Now final : public Clock {
 public:
  MonoTime now() const override { return time; }
  MonoTime time{};
};

class Silent final : public EventSink {
 public:
  void count(Counter, std::int64_t) override {}
  void started(TypeId, Duration) override {}
  void failed(std::string_view, const Error&) override {}
};

// Loses the reply of the next write when told to.
class Line final : public FaultPoint {
 public:
  Fate before(const FakeCall&) override { return Fate::happens; }
  void working(const FakeCall&) override {}
  bool after(const FakeCall& call) override { return !(call.is_write && std::exchange(loses_next, false)); }
  void keep(std::function<void()>) override {}
  bool loses_next = false;
};

// As FakeJobStore; tells, when the bug is planted, of an absent store instead of a refused row.
class SmallStore final : public JobStore {
 public:
  SmallStore(FakeDatabase& database, const Clock& clock, Line& line, bool hides)
      : store_(database, &clock, &line), hides_(hides) {}
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search) override {
    return store_.scan(ranges, search);
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
  using JobStore::finish;
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node,
                                          Duration within) override {
    auto replies = store_.finish(requests, node, within);
    if (!replies && hides_) return Error{ErrorCode::unavailable, "away", ""};
    return replies;
  }
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) override {
    return store_.leases_left(leases);
  }
  Result<int> bury(std::span<const JobId> jobs) override { return store_.bury(jobs); }
  Result<int> drop_late(Lane lane, WallTime before, int limit, const std::string& node) override {
    return store_.drop_late(lane, before, limit, node);
  }

 private:
  FakeJobStore store_;
  const bool hides_;
};

// The data members are the parts of a node, its database, and what was seen. Thread: owner only.
class SmallWorld {
 public:
  SmallWorld(const SmallWorldBugs& bugs, const Budget& budget) : budget_(budget) {
    database.bugs.cancels_running = bugs.cancels_running;
    database.bugs.finish_ignores_token = bugs.finish_ignores_token;
    database.bugs.answers_twice = bugs.answers_twice;
    EngineConfig config;
    config.async_claims = bugs.async_claims;
    database.writer_lag = Duration(0);
    config.capacity = 64;
    config.max_running = 8;
    config.max_polls = 8;
    config.tick = 5ms;
    for (int i = 0; i < 4; ++i)
      stores_.push_back(std::make_unique<SmallStore>(database, clock_, line_, bugs.hides_whose_fault_it_is));
    EngineStores stores{*stores_[0], {stores_[1].get()}, *stores_[2], *stores_[3]};
    engine_ = std::make_unique<Engine>(
        config, std::vector<Shard>{0, 1}, stores, [this](const BizType&) { return &handler_; }, events_, 42);
    stages_ = engine_->stages();
    std::vector<Waker*> wakers;
    for (std::size_t i = 0; i < stages_.size(); ++i) wakers.push_back(&flags_.emplace_back());
    engine_->set_wakers(wakers);
    next_.assign(stages_.size(), MonoTime{});
    BizType type;
    type.type_id = 1;
    type.name = "small";
    type.handler_kind = "small";
    type.backoff.delays = {10ms};
    type.ttr = 20s;
    engine_->set_catalog(std::make_shared<const TypeCatalog>(std::vector<BizType>{type}));
    for (const char* key : {"first", "second"}) {
      jobs_.push_back(database.create({small_job(key)}, CreateMode::all_or_nothing, database.now())->front().job_id);
    }
    if (budget.transactions > 0) {
      NewJob pulse = small_job("first");
      pulse.when.in = kPulse;
      pulse_ = database.create({pulse}, CreateMode::all_or_nothing, database.now())->front().job_id;
    }
    clock_.time += 1ms;
    begin_where_jobs_are_due();
  }

  // What can happen now, by name; performs the one chosen.
  std::vector<std::string> events() {
    std::vector<std::string> all;
    list([&](const std::string& name, const auto&) { all.push_back(name); });
    return all;
  }
  void perform(std::size_t chosen) {
    std::function<void()> what;
    std::size_t i = 0;
    list([&](const std::string&, const std::function<void()>& act) {
      if (i++ == chosen) what = act;
    });
    what();
  }

  // Without any more trouble everything comes to its end, but for an outcome that the store refuses.
  void run_out() {
    if (began_) commit();
    for (int i = 0; i < 4000 && broken.empty(); ++i) {
      bool has_stepped = false;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage)
        if (is_ready(stage)) step(stage), has_stepped = true;
      while (!handler_.running.empty()) answer(0, Outcome::done());
      if (!has_stepped) advance();
      if (has_ended()) return;
    }
    if (broken.empty()) broken = "live: a job has not ended although nothing is in its way";
  }

  // Of everything that decides what can happen next, as far as it shows.
  std::string state() const {
    std::ostringstream out;
    const EngineShared& shared = engine_->shared();
    for (const auto& [id, row] : database.live())
      out << id << ' ' << static_cast<int>(row.job.status) << ' ' << row.job.attempts << ' '
          << (row.job.fire_at - database.now()).count() / 1000 << ';';
    for (const auto& [id, row] : database.history()) out << id << ' ' << static_cast<int>(row.job.status) << ';';
    for (const auto& run : handler_.running)
      out << 'r' << run.claimed->job.job_id << ' ' << is_current(*run.claimed) << ';';
    out << shared.known.size() << ' ' << shared.candidates.size() << ' ' << shared.due.size() << ' '
        << shared.due.backlog_lanes() << ' ' << shared.claimed.size() << ' ' << shared.outcomes.size() << ' '
        << shared.expired.size() << ' ' << shared.limiter.running() << ';';
    for (std::size_t i = 0; i < stages_.size(); ++i)
      out << (is_ready(i) ? -1 : next_[i] == kWhenWoken ? -2 : (next_[i] - clock_.time).count() / 1000) << ' ';
    out << budget_.crashes << budget_.cancels << budget_.lost_replies << budget_.retries << budget_.moves
        << budget_.refusals << budget_.pairs << budget_.transactions << budget_.waits << began_.has_value()
        << jobs_.size() << line_.loses_next << cancelled_.size();
    return out.str();
  }

  std::string broken;
  FakeDatabase database{[this] { return kBegin + clock_.time.time_since_epoch(); }, 2};

 private:
  static constexpr WallTime kBegin{1'767'225'600s};
  static constexpr Duration kPulse = 3s;

  static NewJob small_job(const char* key) {
    NewJob job;
    job.biz_id = key;
    job.type_id = 1;
    job.when.in = Duration(0);
    return job;
  }

  // Before the first claim there is one order only: the scanner reads both jobs, and the wheel brings them out.
  void begin_where_jobs_are_due() {
    for (int i = 0; i < 10'000 && engine_->shared().due.size() < jobs_.size(); ++i) {
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
        const std::string_view name = stages_[stage]->name();
        if ((name == "scanner" || name == "timekeeper") && is_ready(stage)) step(stage);
      }
      clock_.time += 1ms;
    }
  }

  struct Running {
    const ClaimedJob* claimed;
    Handler::Finish finish;
  };
  class SmallHandler final : public Handler {
   public:
    explicit SmallHandler(SmallWorld& world) : world_(world) {}
    void start(const ClaimedJob& job, Finish finish) override {
      if (world_.cancelled_.contains(job.job.job_id)) world_.broken = "I3: started after an acknowledged cancel";
      if (!world_.tokens_.insert(job.token).second) world_.broken = "I4: one claim started twice";
      running.push_back({&job, std::move(finish)});
    }
    std::vector<Running> running;

   private:
    SmallWorld& world_;
  };

  bool is_ready(std::size_t stage) const { return flags_[stage].is_set || next_[stage] <= clock_.time; }
  void step(std::size_t stage) {
    flags_[stage].is_set = false;
    next_[stage] = stages_[stage]->step(clock_.time);
  }
  void advance() {
    MonoTime next = MonoTime::max();
    for (const MonoTime time : next_) next = std::min(next, time);
    clock_.time = std::max(clock_.time + 1us, std::min<MonoTime>(next, clock_.time + 1s));
    if (pulse_ != 0) static_cast<void>(database.reschedule(pulse_, When{{}, kPulse}, database.now()));
  }
  void answer(std::size_t which, Outcome outcome) {
    Running run = std::move(handler_.running[which]);
    handler_.running.erase(handler_.running.begin() + static_cast<std::ptrdiff_t>(which));
    run.finish(std::move(outcome));
  }
  bool is_current(const ClaimedJob& claimed) const {
    const auto row = database.live().find(claimed.job.job_id);
    return row != database.live().end() && row->second.token == claimed.token;
  }
  bool has_ended() const {
    for (const JobId job : jobs_)
      if (!is_final(database.find(job)->status) && !database.refuses(job)) return false;
    return true;
  }
  void cancel(JobId job) {
    const auto reply = database.cancel({job}, database.now());
    if (reply->front().kind == CancelReply::Kind::cancelled) cancelled_.insert(job);
    for (const Running& run : handler_.running)
      if (run.claimed->job.job_id == job && cancelled_.contains(job)) broken = "I3: a running job was cancelled";
  }

  // As their node sends them: together.
  void cancel_twice(JobId job) {
    const auto replies = database.change_together({.cancels = {job, job}}, database.now()).cancels;
    const auto told = std::ranges::count(replies, CancelReply::Kind::cancelled, &CancelReply::kind);
    if (told > 1) broken = "I3: two callers were told that they cancelled one job";
    if (told > 0) cancelled_.insert(job);
  }

  void begin_transaction() {
    began_ = database.now();
    writer_.emplace(database, *began_);
  }
  void commit() {
    writer_.reset();
    jobs_.push_back(database.create({small_job("first")}, CreateMode::all_or_nothing, *began_)->front().job_id);
    began_.reset();
  }
  // Longer than a sweep takes to come.
  void wait_long() {
    const MonoTime end = clock_.time + 40s;
    while (clock_.time < end && broken.empty()) {
      bool has_stepped = false;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage)
        if (is_ready(stage)) step(stage), has_stepped = true;
      if (!has_stepped) advance();
    }
  }

  template <class Use>
  void list(const Use& use) {
    bool is_anything_ready = false;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!is_ready(i)) continue;
      is_anything_ready = true;
      use(std::string("step ") + stages_[i]->name(), [this, i] { step(i); });
    }
    if (!is_anything_ready) use("time passes", [this] { advance(); });
    const auto trouble = [&](const std::string& name, int Budget::*left, const std::function<void()>& act) {
      if (budget_.*left > 0) use(name, [this, left, act] { --(budget_.*left), act(); });
    };
    trouble("a transaction begins", &Budget::transactions, [this] { begin_transaction(); });
    if (began_) use("it is committed", [this] { commit(); });
    trouble("forty seconds pass", &Budget::waits, [this] { wait_long(); });
    trouble("the database crashes", &Budget::crashes, [this] { database.crash(database.now()); });
    trouble("the second job is cancelled", &Budget::cancels, [this] { cancel(jobs_[1]); });
    trouble("two callers cancel the second job at once", &Budget::pairs, [this] { cancel_twice(jobs_[1]); });
    trouble("the next reply to a write is lost", &Budget::lost_replies, [this] { line_.loses_next = true; });
    trouble("the first job is moved", &Budget::moves, [this] {
      static_cast<void>(database.reschedule(jobs_[0], When{{}, Duration(5ms)}, database.now()));
    });
    trouble("the store refuses the first job's outcome", &Budget::refusals, [this] { database.refuse(jobs_[0]); });
    for (std::size_t i = 0; i < handler_.running.size(); ++i) {
      use("a handler is done", [this, i] { answer(i, Outcome::done()); });
      trouble("a handler fails", &Budget::retries, [this, i] { answer(i, Outcome::retry("no")); });
    }
  }

  Now clock_;
  Line line_;
  Silent events_;
  std::vector<std::unique_ptr<SmallStore>> stores_;
  SmallHandler handler_{*this};
  std::unique_ptr<Engine> engine_;
  std::vector<Stage*> stages_;
  std::deque<Flag> flags_;
  std::vector<MonoTime> next_;
  Budget budget_;
  JobId pulse_ = 0;                // moved away before it is due, over and over
  std::optional<WallTime> began_;  // of the open transaction
  std::optional<FakeDatabase::Writer> writer_;
  std::vector<JobId> jobs_;
  std::set<JobId> cancelled_;
  std::set<ClaimToken> tokens_;
};

struct Search {
  Search(const SmallWorldBugs& planted, const Budget& all) : bugs(planted), budget(all) {}

  // Depth first; a state that was seen with as many events left is not gone into again.
  void explore(std::vector<std::size_t>& path, std::size_t depth) {
    if (!broken.empty() || seen.size() >= most) return;
    SmallWorld world(bugs, budget);
    for (const std::size_t event : path) world.perform(event);
    if (judge(world, path)) return;
    const auto [state, is_new] = seen.try_emplace(world.state(), depth);
    if (!is_new && state->second >= depth) return;
    state->second = depth;
    const std::size_t n = world.events().size();
    if (depth == 0) {
      world.run_out();
      judge(world, path);
      return;
    }
    for (std::size_t event = 0; event < n; ++event) {
      path.push_back(event);
      explore(path, depth - 1);
      path.pop_back();
    }
  }

  bool judge(const SmallWorld& world, const std::vector<std::size_t>& path) {
    if (world.broken.empty() || !broken.empty()) return false;
    broken = world.broken + '\n';
    SmallWorld again(bugs, budget);
    for (const std::size_t event : path) {
      broken += "  " + again.events()[event] + '\n';
      again.perform(event);
    }
    return true;
  }

  const SmallWorldBugs bugs;
  const Budget budget;
  std::unordered_map<std::string, std::size_t> seen;  // events that were left
  std::size_t most = 40'000;
  std::string broken;
};

std::size_t number_of(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

Search searched(const SmallWorldBugs& bugs, const Budget& budget = {}, std::size_t usual_depth = 14) {
  Search search(bugs, budget);
  search.most = number_of("TOCSIN_SIM_STATES", search.most);
  const std::size_t deepest = number_of("TOCSIN_SIM_DEPTH", usual_depth);
  // Deeper and deeper: what breaks early is found by a short order.
  for (std::size_t depth = 2; depth <= deepest && search.broken.empty(); depth += 2) {
    search.seen.clear();
    std::vector<std::size_t> path;
    search.explore(path, depth);
  }
  std::printf("%zu states\n%s", search.seen.size(), search.broken.c_str());
  return search;
}

TEST(Exhaustive, KeepsEveryPromiseInEveryOrder) {
  const Search search = searched({});
  EXPECT_EQ(search.broken, "");
  EXPECT_GT(search.seen.size(), 1000U);
}

TEST(Exhaustive, FindsAStartUnderAClaimThatACrashTookBack) {
  EXPECT_EQ(searched({.async_claims = true}).broken.substr(0, 2), "I3");
}

TEST(Exhaustive, FindsTheOutcomesThatOneRefusedRowHoldsUp) {
  EXPECT_EQ(searched({.hides_whose_fault_it_is = true}).broken.substr(0, 4), "live");
}

TEST(Exhaustive, FindsEveryJobWheneverItsTransactionIsCommitted) {
  EXPECT_EQ(searched({}, kBesideATransaction, 4).broken, "");
}

TEST(Exhaustive, FindsACancelThatTwoCallersAreToldOf) {
  EXPECT_EQ(searched({.answers_twice = true}).broken.substr(0, 2), "I3");
}

TEST(Exhaustive, FindsACancelOfARunningJob) {
  EXPECT_EQ(searched({.cancels_running = true}).broken.substr(0, 2), "I3");
}

}  // namespace
}  // namespace tocsin
