#include "delivery/sql_handler.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/utf8.h"
#include "core/retry_policy.h"
#include "delivery/attempt_time.h"
#include "delivery/in_flight.h"
#include "delivery/sql_outcome.h"

namespace tocsin {
namespace {

constexpr Duration kBatchTime = std::chrono::milliseconds(50);    // a batch holds its rows locked as long
constexpr std::size_t kMostInBatch = 256;                         // jobs that share the cost of a commit
constexpr Duration kCallsAhead = std::chrono::milliseconds(200);  // work claimed ahead of the threads
constexpr std::size_t kMostPerThread = 512;                       // jobs per thread
constexpr Duration kDatabasePause = std::chrono::seconds(1);

// The time that a function may count on: a job that waits for longer than a tenth of its lease, or has less than four
// fifths of it left after a batch that was too slow, is released. A batch gets a tenth; it is sized to take far less.
Duration longest_wait(Duration lease) { return lease / 10; }
Duration batch_time(Duration left) { return left / 10; }
Duration least_time(Duration lease) { return lease * 4 / 5; }

Result<FunctionName> function_of(const BizType& type) {
  const auto wrong = [](const std::string& what, const std::string& field) {
    return Error{ErrorCode::invalid, what, field};
  };
  const auto handler = nlohmann::json::parse(type.handler_json, nullptr, /*allow_exceptions=*/false);
  if (!handler.is_object()) return wrong("must be an object", "handler");
  for (const auto& [name, value] : handler.items()) {
    if (name != "kind" && name != "function") return wrong("unknown field", "handler." + name);
  }
  const auto function = handler.find("function");
  if (function == handler.end()) return wrong("is needed", "handler.function");
  if (!function->is_string()) return wrong("must be a string", "handler.function");
  const auto& text = function->get_ref<const std::string&>();
  const auto dot = text.find('.');
  if (dot == std::string::npos || text.find('.', dot + 1) != std::string::npos)
    return wrong("must be schema.name, as in shop.cancel_unpaid", "handler.function");
  FunctionName name{text.substr(0, dot), text.substr(dot + 1)};
  for (const std::string* part : {&name.schema, &name.name}) {
    if (part->empty() || part->size() > 63 || part->find('\0') != std::string::npos)
      return wrong("the schema and the name have 1 to 63 bytes each", "handler.function");
  }
  return name;
}

}  // namespace

Result<Outcome> outcome_of(const std::optional<std::string>& answer) {
  if (!answer) return Outcome::done();
  const auto said = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (said.is_object() && said.size() == 1) {
    if (const auto retry = said.find("retry_ms"); retry != said.end() && retry->is_number()) {
      const double ms = retry->get<double>();
      const double most = std::chrono::duration<double, std::milli>(kLongestBackoff).count();
      if (ms >= 0 && ms <= most && std::floor(ms) == ms)
        return Outcome::retry("the function asked for another attempt",
                              std::chrono::milliseconds(static_cast<std::int64_t>(ms)));
    }
    if (const auto dead = said.find("dead"); dead != said.end() && dead->is_string())
      return Outcome::dead(dead->get<std::string>());
  }
  return Error{ErrorCode::invalid, R"(answered neither NULL nor {"retry_ms":n} nor {"dead":"why"}: )" + *answer, ""};
}

// What all calls of the node share. Thread: any.
class SqlKind::Calls {
 public:
  Calls(FunctionDatabases databases, int threads, std::string node_name, const Clock& clock_of_process)
      : node(std::move(node_name)),
        clock(clock_of_process),
        in_flight(clock_of_process),
        workers(threads, kQueue, kSpareThreads),
        databases_(std::move(databases)) {
    idle_.resize(static_cast<std::size_t>(databases_.count));
  }

  // A session is used by one thread at a time, and kept for the next.
  template <class Use>
  auto with_session(int database, const Use& use) {
    std::unique_ptr<FunctionStore> store = take(database);
    auto reply = use(*store);
    MutexLock lock(mutex_);
    idle_[static_cast<std::size_t>(database)].push_back(std::move(store));
    return reply;
  }

  int databases() const { return databases_.count; }
  int database_of(Shard shard) const { return databases_.of(shard); }
  std::string refusal() const { return databases_.refusal(); }
  std::string name_of(int database) const { return databases_.name(database); }

  const std::string node;
  const Clock& clock;
  InFlight in_flight;
  WorkerPool workers;

 private:
  std::unique_ptr<FunctionStore> take(int database) {
    MutexLock lock(mutex_);
    auto& idle = idle_[static_cast<std::size_t>(database)];
    if (idle.empty()) return databases_.connect(database);
    auto store = std::move(idle.back());
    idle.pop_back();
    return store;
  }

  const FunctionDatabases databases_;
  Mutex mutex_;
  std::vector<std::vector<std::unique_ptr<FunctionStore>>> idle_ TOCSIN_GUARDED_BY(mutex_);  // by database
};

// The jobs of one type in one database. Thread: any.
class SqlKind::Lane : public std::enable_shared_from_this<SqlKind::Lane> {
 public:
  Lane(std::shared_ptr<Calls> calls, TypeId type, FunctionName function, int database,
       std::shared_ptr<WorkerShare> pool)
      : calls_(std::move(calls)),
        number_(std::int64_t{type} * calls_->databases() + database),
        function_(std::move(function)),
        database_(database),
        pool_(std::move(pool)) {}

  void start(const ClaimedJob& claimed, Handler::Finish& finish) {
    const MonoTime now = calls_->clock.now();
    const Duration lease = claimed.lease_deadline - now;
    const MonoTime begin_by = now + longest_wait(lease);
    Attempt attempt{0,
                    {claimed.job.job_id, claimed.token},
                    lease,
                    claimed.lease_deadline,
                    begin_by,
                    claimed.job.attempts,
                    claimed.job.max_attempts,
                    claimed.job.attempts > 1};
    // From here on the attempt may end at any moment, and its job with it.
    attempt.in_flight = calls_->in_flight.add(finish, begin_by);
    if (attempt.in_flight == 0) return finish(Outcome::not_started(Duration(0)));
    {
      MutexLock lock(mutex_);
      waiting_.push_back(attempt);
    }
    ask_for_a_turn();
  }

 private:
  struct Attempt {
    std::uint64_t in_flight = 0;
    FunctionCall call;
    Duration lease{0};  // left when the attempt came
    MonoTime lease_deadline{}, begin_by{};
    int number = 1;
    int most = 1;
    bool is_alone = false;  // runs in no batch
  };

  // If the pool refuses (full, or stopped), an earlier turn takes this attempt, or stop() ends it.
  void ask_for_a_turn() {
    static_cast<void>(calls_->workers.try_run(number_, [self = shared_from_this()] { self->take_turn(); }));
  }

  void take_turn() {
    std::vector<Attempt> batch = take();
    if (batch.empty()) return;
    bool is_batch = batch.size() > 1;
    std::erase_if(batch, [this](const Attempt& attempt) { return !begin(attempt); });
    // A single attempt may use its whole lease: it is no batch, so that the next batch does not wait for it.
    if (is_batch && batch.size() < 2) is_batch = leave_batch();
    const bool is_well = run(batch);
    bool is_more;
    {
      MutexLock lock(mutex_);
      limit_ = is_well ? std::min(limit_ + 1 + limit_ / 4, kMostInBatch) : std::max<std::size_t>(1, batch.size() / 2);
      if (is_batch) is_batching_ = false;
      is_more = !waiting_.empty();
    }
    if (is_more) ask_for_a_turn();  // turns during a batch may have found only attempts that had to wait for it
  }

  bool leave_batch() {
    {
      MutexLock lock(mutex_);
      is_batching_ = false;
    }
    ask_for_a_turn();
    return false;
  }

  std::vector<Attempt> take() {
    MutexLock lock(mutex_);
    std::size_t n = std::min(limit_, pool_->time().fitting(kBatchTime, kMostInBatch));
    // Attempts that run alone need not wait for a running batch; its thread queues the rest again.
    const bool is_alone_only = is_batching_ && n > 1;
    const auto first = is_alone_only ? std::ranges::find_if(waiting_, &Attempt::is_alone) : waiting_.begin();
    if (first == waiting_.end()) return {};
    if (n > 1 && !first->is_alone) {
      const auto alone = std::ranges::find_if(waiting_, &Attempt::is_alone);
      n = std::min(n, static_cast<std::size_t>(alone - first));
    } else {
      n = 1;
    }
    const auto end = first + static_cast<std::ptrdiff_t>(n);
    std::vector<Attempt> batch(first, end);
    waiting_.erase(first, end);
    is_batching_ = is_batching_ || n > 1;
    return batch;
  }

  // False: the attempt has ended, or must not start any more. start_by does not matter here: begin_by leaves more of
  // the lease, and the call locks the row and checks the token in the transaction that does the work.
  bool begin(const Attempt& attempt) {
    if (!calls_->in_flight.begin(attempt.in_flight)) return false;
    if (calls_->clock.now() < attempt.begin_by) return true;
    end(attempt, Outcome::not_started(Duration(0)));
    return false;
  }

  void end(const Attempt& attempt, Outcome outcome) { calls_->in_flight.end(attempt.in_flight, std::move(outcome)); }

  // False: some call failed.
  bool run(std::span<const Attempt> batch) {
    if (batch.empty()) return true;
    const MonoTime began = calls_->clock.now();
    const Attempt& tightest = *std::ranges::min_element(batch, {}, &Attempt::lease_deadline);
    const Duration left = tightest.lease_deadline - began;
    if (left < least_time(tightest.lease)) {
      for (const Attempt& attempt : batch) end(attempt, Outcome::not_started(Duration(0)));
      return true;
    }
    std::vector<FunctionCall> calls;
    for (const Attempt& attempt : batch) calls.push_back(attempt.call);
    // A call that hangs must leave the others of the batch time.
    const Duration timeout = batch.size() > 1 ? batch_time(left) : left;
    const auto reply = calls_->with_session(database_, [&](FunctionStore& store) {
      return store.run(
          function_, calls, timeout,
          [&](std::size_t n, const std::optional<std::string>& answer) { return request_for(batch[n], answer); },
          calls_->node);
    });
    if (!reply) {
      const bool is_overdue = calls_->clock.now() - began > timeout;
      for (const Attempt& attempt : batch) end(attempt, outcome_of_error(reply.error(), is_overdue));
      return false;
    }
    // The time of the calls alone: if the commit counted, a slow disk would lead to smaller batches and so to more
    // commits.
    const Duration took = reply->failure.empty() ? reply->took : calls_->clock.now() - began;
    pool_->time().took(took / static_cast<std::int64_t>(batch.size()));
    if (!reply->failure.empty()) {
      run_apart(batch, *reply);
      return false;
    }
    for (std::size_t i = 0; i < batch.size(); ++i) end(batch[i], outcome_of_written(reply->written[i]));
    return true;
  }

  void run_apart(std::span<const Attempt> batch, const FunctionReply& reply) {
    if (batch.size() == 1) return end(batch.front(), Outcome::retry(reply.failure));
    if (reply.is_too_slow) return queue_apart(batch);
    // Halves find the one that failed with few transactions.
    const std::size_t half = (batch.size() + 1) / 2;
    for (const auto part : {batch.first(half), batch.subspan(half)})
      part.size() > 1 ? void(run(part)) : queue_apart(part);
  }

  // Each may take its whole lease, so none waits for another.
  void queue_apart(std::span<const Attempt> batch) {
    MutexLock lock(mutex_);
    for (Attempt attempt : batch) {
      attempt.is_alone = true;
      attempt.begin_by = attempt.lease_deadline - least_time(attempt.lease);
      calls_->in_flight.wait_again(attempt.in_flight, attempt.begin_by);
      waiting_.push_back(attempt);
      ask_for_a_turn();
    }
  }

  static Outcome outcome_of_error(const Error& error, bool is_overdue) {
    switch (error.code) {
      case ErrorCode::unavailable:
        return Outcome::not_started(kDatabasePause);
      case ErrorCode::in_doubt:
        // Refused as stale by the token if the transaction was committed after all.
        return Outcome::retry((is_overdue ? "the function overran its time, so its session was ended: "
                                          : "the connection was lost while the function ran: ") +
                              error.message);
      case ErrorCode::conflict:
      case ErrorCode::moved:
      case ErrorCode::superseded:
      case ErrorCode::invalid:
        break;
    }
    return Outcome::retry(error.message);
  }

  static Result<FinishRequest> request_for(const Attempt& attempt, const std::optional<std::string>& answer) {
    const auto outcome = outcome_of(answer);
    if (!outcome) return outcome.error();
    return end_of_call(attempt.call, *outcome, attempt.number >= attempt.most,
                       storable(outcome->message, kLongestJobError));
  }

  const std::shared_ptr<Calls> calls_;
  const std::int64_t number_;  // among the lanes of the workers
  const FunctionName function_;
  const int database_;
  const std::shared_ptr<WorkerShare> pool_;
  Mutex mutex_;
  std::deque<Attempt> waiting_ TOCSIN_GUARDED_BY(mutex_);
  std::size_t limit_ TOCSIN_GUARDED_BY(mutex_) = kMostInBatch / 4;  // of a batch: halved when a call fails
  bool is_batching_ TOCSIN_GUARDED_BY(mutex_) = false;
};

class SqlKind::TypeHandler final : public Handler {
 public:
  TypeHandler(std::shared_ptr<Calls> calls, TypeId type, const FunctionName& function)
      : calls_(std::move(calls)),
        pool_(std::make_shared<WorkerShare>(calls_->workers.threads(), kCallsAhead, kMostPerThread)) {
    for (int database = 0; database < calls_->databases(); ++database)
      lanes_.push_back(std::make_shared<Lane>(calls_, type, function, database, pool_));
  }

  void start(const ClaimedJob& claimed, Finish finish) override {
    const int database = calls_->database_of(claimed.job.shard());
    // Since the claim its shard has moved to a database that this node does not use; or of that database it does not
    // know yet whether its role is a superuser.
    if (database < 0 || !calls_->refusal().empty()) return finish(Outcome::not_started(kDatabasePause));
    lanes_[static_cast<std::size_t>(database)]->start(claimed, finish);
  }

  std::shared_ptr<const StartPool> pool() const override { return pool_; }
  std::string hold_reason() const override { return calls_->refusal(); }

 private:
  const std::shared_ptr<Calls> calls_;
  const std::shared_ptr<WorkerShare> pool_;
  std::vector<std::shared_ptr<Lane>> lanes_;  // by database
};

SqlKind::SqlKind(FunctionDatabases databases, int threads, std::string node, const Clock& clock)
    : calls_(std::make_shared<Calls>(std::move(databases), threads, std::move(node), clock)) {}

SqlKind::~SqlKind() { stop(Duration(0)); }

std::optional<Error> SqlKind::check(const BizType& type) const {
  if (const std::string why = calls_->refusal(); !why.empty()) return Error{ErrorCode::invalid, why, "handler.kind"};
  const auto function = function_of(type);
  if (!function) return function.error();
  for (int database = 0; database < calls_->databases(); ++database) {
    const auto checked = calls_->with_session(database, [&](FunctionStore& store) { return store.check(*function); });
    // A database that is down is checked by the first attempt there.
    if (checked || checked.error().code != ErrorCode::invalid) continue;
    Error error = checked.error();
    if (calls_->databases() > 1) error.message = "in the database " + calls_->name_of(database) + ": " + error.message;
    return error;
  }
  return {};
}

std::shared_ptr<Handler> SqlKind::make(const BizType& type) {
  if (!calls_->refusal().empty()) return nullptr;
  const auto function = function_of(type);
  return function ? std::make_shared<TypeHandler>(calls_, type.type_id, *function) : nullptr;
}

void SqlKind::stop(Duration grace) {
  calls_->workers.stop(grace);
  calls_->in_flight.close();
}

}  // namespace tocsin
