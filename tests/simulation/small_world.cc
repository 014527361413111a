#include "simulation/small_world.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace tocsin {

using namespace std::chrono_literals;
using NextWrite = SmallGround::NextWrite;

// SmallSqlCaller ------------------------------------------------------------------------------------------------------

NewJob SmallSqlCaller::job() {
  NewJob job;
  job.biz_id = "first";
  job.type_id = 1;
  job.when.in = Duration(0);
  job.idempotency_key = "once";
  return job;
}

const char* SmallSqlCaller::next() const {
  if (done_ == kOrder.size()) return nullptr;
  switch (step()) {
    case Step::read_clock:
      return "reads the clock";
    case Step::take_id:
      return "gets its id";
    case Step::insert:
      return transaction_->waits_for(job()) ? nullptr : "inserts its row";
    case Step::commit:
      return "commits";
  }
  return nullptr;
}

void SmallSqlCaller::go_on() {
  const WallTime now = ground_.database.now();
  if (!transaction_) transaction_.emplace(ground_.database);
  switch (step()) {
    case Step::read_clock:
      clock_ = now;
      break;
    case Step::take_id:
      transaction_->take_id(now);
      break;
    case Step::insert:
      if (const auto reply = transaction_->create(job(), clock_); reply && reply->kind == CreateReply::Kind::created) {
        inserted_ = reply->job_id;
        ground_.uncommitted.insert(*inserted_);
      }
      break;
    case Step::commit:
      if (inserted_) ground_.uncommitted.erase(*inserted_);
      if (transaction_->commit()) committed_ = inserted_;
      transaction_.reset();
      break;
  }
  ++done_;
}

void SmallSqlCaller::roll_back() {
  transaction_.reset();
  done_ = kOrder.size();
}

std::string SmallSqlCaller::state() const {
  const auto age = transaction_ ? (ground_.database.now() - clock_).count() / 1000 : 0;
  return std::to_string(done_) + (inserted_ ? "i" : "") + (committed_ ? "c" : "") + std::to_string(age);
}

// SmallWorld ----------------------------------------------------------------------------------------------------------

SmallWorld::SmallWorld(const SmallWorldBugs& bugs, const SmallScope& scope) : left_(scope), ground_(bugs) {
  BizType type;
  type.type_id = 1;
  type.name = "small";
  type.handler_kind = "small";
  type.backoff.delays = {10ms};
  type.ttr = 20s;
  const auto catalog = std::make_shared<const TypeCatalog>(std::vector<BizType>{type});
  FakeDatabase& database = ground_.database;
  const auto create = [&](const NewJob& job) {
    return database.create({job}, CreateMode::all_or_nothing, database.now())->front().job_id;
  };
  for (const char* key : {"first", "second", "third", "fourth", "fifth", "sixth"})
    if (std::ssize(jobs_) < scope.jobs) jobs_.push_back(create(small_job(key, Duration(0))));
  if (scope.callers > 0) pulse_ = create(small_job("first", kPulse));
  ground_.time += 1ms;
  for (int i = 1; i <= scope.nodes; ++i) nodes_.push_back(std::make_unique<SmallNode>(ground_, i, catalog));
  for (int i = 0; i < scope.callers; ++i) callers_.push_back(std::make_unique<SmallSqlCaller>(ground_));
  begin_where_jobs_are_due();
}

NewJob SmallWorld::small_job(const char* key, Duration in) {
  NewJob job;
  job.biz_id = key;
  job.type_id = 1;
  job.when.in = in;
  return job;
}

// Before the first claim there is one order only: the scanner reads all jobs, and the wheel brings them out.
void SmallWorld::begin_where_jobs_are_due() {
  const auto are_due = [&] {
    return std::ranges::all_of(nodes_, [&](const auto& node) { return node->shared().due.size() >= jobs_.size(); });
  };
  for (int i = 0; i < 10'000 && !are_due(); ++i) {
    for (const auto& node : nodes_) {
      if (node->is_ready(0)) node->step(0);
      node->settle();
    }
    ground_.time += 1ms;
  }
}

std::vector<std::string> SmallWorld::events() {
  std::vector<std::string> all;
  list([&](std::string name, const Act&) { all.push_back(std::move(name)); });
  return all;
}

bool SmallWorld::perform(std::size_t chosen) {
  Act what;
  std::size_t i = 0;
  list([&](const std::string&, const Act& act) {
    if (i++ == chosen) what = act;
  });
  const bool has_happened = what();
  if (left_.runs_by_itself) step_all();
  for (const auto& node : nodes_) node->settle();
  return has_happened;
}

void SmallWorld::list(const Use& use) {
  if (!left_.runs_by_itself) list_steps(use);
  list_handlers(use);
  list_sql(use);
  list_troubles(use);
}

void SmallWorld::list_steps(const Use& use) {
  bool is_anything_ready = false;
  for (const auto& node : nodes_) {
    for (std::size_t i = 0; i < node->stages(); ++i) {
      if (!node->is_ready(i)) continue;
      is_anything_ready = true;
      const std::string name = node->name_of(i) + " steps";
      const auto with = [this, &at = *node, i](NextWrite effect) {
        return [this, &at, i, effect] { return step_with(effect, at, i); };
      };
      use(name, with(NextWrite::happens));
      if (!node->writes(i)) continue;
      trouble(use, name + ", its reply is lost", left_.lost_replies, with(NextWrite::loses_its_reply));
      trouble(use, name + ", its write arrives later", left_.late_writes, with(NextWrite::arrives_later));
    }
  }
  if (!is_anything_ready) use("time passes", [this] { return advance(), true; });
  if (!ground_.on_their_way.empty())
    use("a late write arrives", [this] {
      const auto late = std::move(ground_.on_their_way.front());
      ground_.on_their_way.erase(ground_.on_their_way.begin());
      return late.effect(), true;
    });
}

void SmallWorld::trouble(const Use& use, const std::string& name, int& left, const Act& act) {
  if (left > 0) use(name, [&left, act] { return --left, act(); });
}

void SmallWorld::list_troubles(const Use& use) {
  FakeDatabase& database = ground_.database;
  trouble(use, "the database crashes", left_.crashes, [&] { return database.crash(database.now()), true; });
  for (const auto& node : nodes_)
    trouble(use, node->name_of(0) + " and all of it is killed and starts again", left_.crashes,
            [&at = *node] { return at.restart(), true; });
  trouble(use, "everything stands still for 25 s", left_.standstills, [this] { return ground_.time += 25s, true; });
  if (jobs_.empty()) return;
  const JobId first = jobs_.front(), last = jobs_.back();
  trouble(use, "the last job is cancelled", left_.cancels, [this, last] { return cancel(last); });
  trouble(use, "two callers cancel the last job at once", left_.pairs, [this, last] { return cancel_twice(last); });
  trouble(use, "the first job is rescheduled", left_.reschedules, [&database, first] {
    const auto reply = database.reschedule(first, When{{}, Duration(5ms)}, database.now());
    return reply && reply->kind == ChangeReply::Kind::changed;
  });
  trouble(use, "the store refuses the first job's outcome", left_.refusals,
          [&database, first] { return database.refuse(first), !is_final(database.find(first)->status); });
}

void SmallWorld::list_handlers(const Use& use) {
  for (const auto& node : nodes_) {
    for (std::size_t i = 0; i < node->running(); ++i) {
      use("a handler is done", [&at = *node, i] { return at.answer(i, Outcome::done()), true; });
      trouble(use, "a handler fails", left_.retries,
              [&at = *node, i] { return at.answer(i, Outcome::retry("no")), true; });
    }
  }
}

void SmallWorld::list_sql(const Use& use) {
  int number = 0;
  for (const auto& caller : callers_) {
    const std::string name = "caller " + std::to_string(++number);
    if (const char* next = caller->next()) use(name + ' ' + next, [&at = *caller] { return at.go_on(), true; });
    if (caller->is_open()) use(name + " rolls back", [&at = *caller] { return at.roll_back(), true; });
  }
  trouble(use, "another transaction writes", left_.writers, [this] {
    FakeDatabase& database = ground_.database;
    return writers_.push_back(std::make_unique<FakeDatabase::Writer>(database, database.now())), true;
  });
  if (!writers_.empty()) use("it ends", [this] { return writers_.clear(), true; });
  trouble(use, "a second passes", left_.seconds, [this] { return pass(1s), true; });
  trouble(use, "a sweep passes", left_.sweeps, [this] { return pass(12s), true; });
}

bool SmallWorld::step_with(NextWrite effect, SmallNode& node, std::size_t stage) {
  ground_.next_write = effect;
  node.step(stage);
  // What was not written cannot be lost.
  return std::exchange(ground_.next_write, NextWrite::happens) == NextWrite::happens;
}

void SmallWorld::advance() {
  MonoTime next = MonoTime::max();
  for (const auto& node : nodes_) next = std::min(next, node->next_time());
  ground_.time = std::max(ground_.time + 1us, std::min<MonoTime>(next, ground_.time + 1s));
  if (pulse_ == 0) return;
  FakeDatabase& database = ground_.database;
  const bool is_soon = database.live().at(pulse_).job.fire_at < database.now() + 4s;
  if (is_soon) static_cast<void>(database.reschedule(pulse_, When{{}, kPulse}, database.now()));
}

bool SmallWorld::step_all() {
  bool has_stepped = false;
  for (const auto& node : nodes_) {
    for (std::size_t stage = 0; stage < node->stages(); ++stage)
      if (node->is_ready(stage)) node->step(stage), has_stepped = true;
    while (node->running() > 0) node->answer(0, Outcome::done()), has_stepped = true;
  }
  return has_stepped;
}

void SmallWorld::pass(Duration time) {
  const MonoTime end = ground_.time + time;
  while (ground_.time < end && ground_.broken.empty())
    if (!step_all()) advance();
}

void SmallWorld::run_out() {
  for (const auto& caller : callers_) {
    while (caller->is_open() && caller->next()) caller->go_on();
    caller->roll_back();
  }
  writers_.clear();
  for (const auto& late : std::exchange(ground_.on_their_way, {})) late.effect();
  for (int i = 0; i < 4000 && ground_.broken.empty(); ++i) {
    if (!step_all()) advance();
    if (are_jobs_over()) return;
  }
  ground_.breaks("live: a job has not ended although nothing is in its way");
}

bool SmallWorld::are_jobs_over() const {
  const auto is_over = [&](JobId job) {
    return is_final(ground_.database.find(job)->status) || ground_.database.refuses(job);
  };
  return std::ranges::all_of(jobs_, is_over) && std::ranges::all_of(callers_, [&](const auto& caller) {
           return !caller->committed() || is_over(*caller->committed());
         });
}

bool SmallWorld::has_ended() const {
  return !left_.runs_by_itself && are_jobs_over() && ground_.on_their_way.empty() &&
         std::ranges::all_of(nodes_, [](const auto& node) { return node->running() == 0; });
}

bool SmallWorld::cancel(JobId job) {
  const auto reply = ground_.database.cancel({job}, ground_.database.now());
  if (!reply || reply->front().kind != CancelReply::Kind::cancelled) return false;
  return ground_.cancelled.insert(job), true;
}

// As their node sends them: together.
bool SmallWorld::cancel_twice(JobId job) {
  ChangeBatch both;
  both.cancels = {job, job};
  const auto replies = ground_.database.change_together(both, ground_.database.now()).cancels;
  const auto told = std::ranges::count_if(
      replies, [](const auto& reply) { return reply && reply->kind == CancelReply::Kind::cancelled; });
  if (told > 1) ground_.breaks("I3: two callers were told that they cancelled one job");
  if (told > 0) ground_.cancelled.insert(job);
  return told > 0;
}

std::string SmallWorld::state() const {
  std::ostringstream out;
  const FakeDatabase& database = ground_.database;
  for (const auto& [id, row] : database.live())
    if (id != pulse_)
      out << id << ' ' << static_cast<int>(row.job.status) << ' ' << row.job.attempts << ' '
          << (row.job.fire_at - database.now()).count() << ';';
  for (const auto& [id, row] : database.history()) out << id << ' ' << static_cast<int>(row.job.status) << ';';
  for (const auto& node : nodes_) node->write_state(out);
  ground_.write_state(out);
  const SmallScope& left = left_;
  for (const int count : {left.crashes, left.cancels, left.pairs, left.reschedules, left.retries, left.lost_replies,
                          left.late_writes, left.refusals, left.standstills, left.writers, left.seconds, left.sweeps})
    out << count;
  out << ' ' << writers_.size() << ' ' << ground_.cancelled.size();
  // Where a floor stands depends on how much time has passed, and when.
  if (left.runs_by_itself) out << ' ' << ground_.time.time_since_epoch().count() / 1000;
  for (const auto& caller : callers_) out << ' ' << caller->state();
  return out.str();
}

}  // namespace tocsin
