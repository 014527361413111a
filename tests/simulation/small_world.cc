#include "simulation/small_world.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace tocsin {

using namespace std::chrono_literals;

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
      if (transaction_->commit()) {
        committed_ = inserted_;
        if (inserted_) ground_.uncommitted.erase(*inserted_);
      }
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

SmallSqlCancel::SmallSqlCancel(SmallGround& ground, JobId job)
    : ground_(ground), job_(job), began_(ground.database.now()) {
  transaction_.emplace(ground.database);
  if (transaction_->cancel(job, began_).kind != CancelReply::Kind::cancelled) roll_back();
}

void SmallSqlCancel::commit() {
  if (transaction_->commit()) {
    ground_.cancelled.insert(job_);
    if (ground_.database.find(job_)->status != JobStatus::cancelled)
      ground_.breaks("I3: a cancel was committed, and its job is not cancelled");
  }
  transaction_.reset();
}

std::string SmallSqlCancel::state() const {
  return std::to_string(job_) + (is_open() ? "o" + std::to_string((ground_.database.now() - began_).count()) : "-");
}

// SmallWorld ----------------------------------------------------------------------------------------------------------

SmallWorld::SmallWorld(const SmallWorldBugs& bugs, const SmallScope& scope)
    : scope_(scope), left_(scope), ground_(bugs) {
  BizType type;
  type.type_id = 1;
  type.name = "small";
  type.handler_kind = scope.are_in_database ? "sql" : "small";
  ground_.are_in_database = scope.are_in_database;
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
  trouble(use, "the database crashes", left_.crashes, [this] { return crash(); });
  for (const auto& node : nodes_)
    trouble(use, node->name_of(0) + " and all of it is killed and starts again", left_.restarts,
            [&at = *node] { return at.restart(), true; });
  trouble(use, "everything stands still for 25 s", left_.standstills, [this] { return ground_.time += 25s, true; });
  list_calls(use);
  if (jobs_.empty()) return;
  trouble(use, "the store refuses the first job's outcome", left_.refusals, [&database, first = jobs_.front()] {
    return database.refuse(first), !is_final(database.find(first)->status);
  });
}

// Each call may be for the job of any other. A call that takes effect later than its caller was told is not listed: it
// is the same call at the later moment, with its answer lost.
void SmallWorld::list_calls(const Use& use) {
  for (const JobId job : known_jobs()) {
    const std::string name = "job " + std::to_string(job);
    const auto with_loss = [&](const std::string& what, int& left, const std::function<bool(NextWrite)>& act) {
      trouble(use, name + ' ' + what, left, [act] { return act(NextWrite::happens); });
      if (left_.lost_answers > 0)
        trouble(use, name + ' ' + what + ", and its caller is not told", left,
                [this, act] { return --left_.lost_answers, act(NextWrite::loses_its_reply); });
    };
    with_loss("is cancelled", left_.cancels, [this, job](NextWrite effect) { return cancel(job, effect); });
    with_loss("is rescheduled", left_.reschedules, [this, job](NextWrite effect) { return reschedule(job, effect); });
    trouble(use, name + " is cancelled by two callers at once", left_.pairs, [this, job] { return cancel_twice(job); });
    trouble(use, name + " is cancelled in a transaction", left_.sql_cancels, [this, job] {
      sql_cancels_.push_back(std::make_unique<SmallSqlCancel>(ground_, job));
      return sql_cancels_.back()->is_open();
    });
  }
}

void SmallWorld::list_handlers(const Use& use) {
  for (const auto& node : nodes_) {
    for (std::size_t i = 0; i < node->running(); ++i) {
      if (scope_.are_in_database) {
        list_functions(use, *node, i);
        continue;
      }
      use("a handler is done", [&at = *node, i] { return at.answer(i, Outcome::done()), true; });
      trouble(use, "a handler fails", left_.retries,
              [&at = *node, i] { return at.answer(i, Outcome::retry("no")), true; });
    }
  }
}

void SmallWorld::list_functions(const Use& use, SmallNode& node, std::size_t run) {
  const auto call = [&at = node, run](const Outcome& outcome, NextWrite effect) {
    return [&at, run, outcome, effect] { return at.call(run, outcome, effect); };
  };
  use("a function is called", call(Outcome::done(), NextWrite::happens));
  trouble(use, "a function raises an error", left_.retries, call(Outcome::retry("no"), NextWrite::happens));
  trouble(use, "a function is called, its reply is lost", left_.lost_replies,
          call(Outcome::done(), NextWrite::loses_its_reply));
  trouble(use, "a function is called, its transaction ends later", left_.late_writes,
          call(Outcome::done(), NextWrite::arrives_later));
}

void SmallWorld::list_sql(const Use& use) {
  int number = 0;
  for (const auto& caller : callers_) {
    const std::string name = "caller " + std::to_string(++number);
    if (const char* next = caller->next())
      use(name + ' ' + next, [this, &at = *caller] {
        at.go_on();
        // Its notification. Where time passes by itself, scans have to find the job.
        for (const auto& node : nodes_)
          if (at.committed() && !left_.runs_by_itself) node->sweep();
        return true;
      });
    if (caller->is_open()) use(name + " rolls back", [&at = *caller] { return at.roll_back(), true; });
  }
  for (const auto& each : sql_cancels_) {
    if (!each->is_open()) continue;
    use("the cancel is committed", [&at = *each] { return at.commit(), true; });
    use("the cancel is rolled back", [&at = *each] { return at.roll_back(), true; });
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
    while (node->running() > 0) end_first(*node), has_stepped = true;
  }
  return has_stepped;
}

void SmallWorld::end_first(SmallNode& node) {
  if (scope_.are_in_database)
    node.call(0, Outcome::done(), NextWrite::happens);
  else
    node.answer(0, Outcome::done());
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
  for (const auto& each : sql_cancels_) each->roll_back();
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
         std::ranges::all_of(callers_, [](const auto& caller) { return caller->has_ended(); }) &&
         std::ranges::all_of(nodes_, [](const auto& node) { return node->running() == 0; });
}

SmallTroubles SmallWorld::happened() const {
  SmallTroubles all;
  for (std::size_t i = 0; i < kSmallTroubles.size(); ++i)
    all[i] = scope_.*kSmallTroubles[i].number > left_.*kSmallTroubles[i].number;
  return all;
}

// It ends all transactions; their callers give up.
bool SmallWorld::crash() {
  ground_.database.crash(ground_.database.now());
  for (const auto& caller : callers_)
    if (caller->is_open()) caller->roll_back();
  for (const auto& each : sql_cancels_) each->roll_back();
  writers_.clear();
  return true;
}

// The jobs that callers know.
std::vector<JobId> SmallWorld::known_jobs() const {
  std::vector<JobId> all = jobs_;
  for (const auto& caller : callers_)
    if (const auto job = caller->committed()) all.push_back(*job);
  return all;
}

bool SmallWorld::cancel(JobId job, NextWrite effect) {
  const auto is_cancelled = [&] { return ground_.database.find(job)->status == JobStatus::cancelled; };
  const bool was_cancelled = is_cancelled();
  FakeClientStore store(ground_.database, &ground_, &ground_);
  ground_.next_write = effect;
  const auto replies = store.cancel({&job, 1}, LockWait::none);
  ground_.next_write = NextWrite::happens;
  if (replies && replies->front().kind == CancelReply::Kind::cancelled) {
    if (was_cancelled) ground_.breaks("I3: a caller was told that it cancelled a cancelled job");
    ground_.cancelled.insert(job);
  }
  if (was_cancelled || !is_cancelled()) return false;
  return note_cancelled(job), true;
}

void SmallWorld::note_cancelled(JobId job) {
  has_cancelled_rescheduled_ = has_cancelled_rescheduled_ || rescheduled_.contains(job);
}

// As their node sends them: together.
bool SmallWorld::cancel_twice(JobId job) {
  ChangeBatch both;
  both.cancels = {job, job};
  const auto replies = ground_.database.change_together(both, ground_.database.now()).cancels;
  const auto told = std::ranges::count_if(
      replies, [](const auto& reply) { return reply && reply->kind == CancelReply::Kind::cancelled; });
  if (told > 1) ground_.breaks("I3: two callers were told that they cancelled one job");
  if (told == 0) return false;
  ground_.cancelled.insert(job);
  return note_cancelled(job), true;
}

// The node that was asked has a hint of the new time, unless the answer was lost on its way to it.
bool SmallWorld::reschedule(JobId job, NextWrite effect) {
  const WallTime before = ground_.database.find(job)->action_time;
  ChangeBatch batch;
  batch.changes.push_back({job, When{{}, Duration(5ms)}});
  FakeClientStore store(ground_.database, &ground_, &ground_);
  ground_.next_write = effect;
  const auto replies = store.change_together(batch);
  ground_.next_write = NextWrite::happens;
  const Job after = *ground_.database.find(job);
  if (after.action_time == before) return false;
  if (replies) nodes_.front()->hint({job, after.type_id, after.fire_at});
  return rescheduled_.insert(job), true;
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
  for (const SmallTrouble& each : kSmallTroubles) out << left_.*each.number;
  out << ' ' << writers_.size();
  for (const JobId job : ground_.cancelled) out << ' ' << job;
  // Where a floor stands depends on how much time has passed, and when.
  const bool has_transactions = !callers_.empty() || scope_.sql_cancels > 0;
  if (has_transactions) out << ' ' << ground_.time.time_since_epoch().count() / 1000;
  for (const auto& caller : callers_) out << ' ' << caller->state();
  for (const auto& each : sql_cancels_) out << ' ' << each->state();
  return out.str();
}

}  // namespace tocsin
