#include "delivery/cpp_handler.h"

#include <algorithm>
#include <utility>

#include "delivery/attempt_time.h"
#include "delivery/in_flight.h"

namespace tocsin {
namespace {

constexpr Duration kFullQueuePause = std::chrono::seconds(1);
// Claimed ahead of the workers: as much as they work off in this time, so that a quick function never waits for a claim
// and a slow one does not sit on jobs that another node could run.
constexpr Duration kWorkAhead = std::chrono::milliseconds(200);
constexpr std::size_t kMostPerWorker = 256;  // jobs per worker

Outcome call(const CppHandler& function, const Job& job) {
  try {
    Outcome outcome = function(job);
    outcome.is_written = false;  // it cannot have been: the function has no token
    return outcome;
  } catch (const std::exception& error) {
    return Outcome::retry(error.what());
  } catch (...) {
    return Outcome::retry("the handler threw something that is no std::exception");
  }
}

}  // namespace

bool CppHandlers::add(const std::string& type_name, CppHandler handler) {
  MutexLock lock(mutex_);
  return by_type_.emplace(type_name, std::make_shared<const CppHandler>(std::move(handler))).second;
}

std::shared_ptr<const CppHandler> CppHandlers::find(const std::string& type_name) const {
  MutexLock lock(mutex_);
  const auto it = by_type_.find(type_name);
  return it == by_type_.end() ? nullptr : it->second;
}

class CppRunner::FunctionHandler final : public Handler {
 public:
  FunctionHandler(CppRunner& runner, std::shared_ptr<const CppHandler> function)
      : runner_(runner),
        function_(std::move(function)),
        pool_(std::make_shared<WorkerShare>(runner.workers_.threads(), kWorkAhead, kMostPerWorker)) {}

  void start(const ClaimedJob& job, Finish finish) override {
    const std::shared_ptr<InFlight> in_flight = runner_.in_flight_;
    // From add() on the attempt may end at any moment, and its job with it.
    ClaimedJob own = job;
    const TypeId type = job.job.type_id;
    const std::uint64_t attempt = in_flight->add(finish, job.start_by);
    if (attempt == 0) return finish(Outcome::not_started(Duration(0)));
    // A task may outlive stop(): the clock must live as long as the process.
    const bool is_queued = runner_.workers_.try_run(
        type, [in_flight, attempt, job = std::move(own), function = function_, pool = pool_, &clock = runner_.clock_] {
          const MonoTime begun = clock.now();
          if (begun >= job.start_by) return in_flight->end(attempt, Outcome::not_started(Duration(0)));
          if (!in_flight->begin(attempt)) return;
          Outcome outcome = call(*function, job.job);
          pool->time().took(clock.now() - begun);
          in_flight->end(attempt, std::move(outcome));
        });
    if (!is_queued) in_flight->end(attempt, Outcome::not_started(kFullQueuePause));
  }

  std::shared_ptr<const StartPool> pool() const override { return pool_; }

 private:
  CppRunner& runner_;
  const std::shared_ptr<const CppHandler> function_;
  const std::shared_ptr<WorkerShare> pool_;  // shared with functions that overrun
};

CppRunner::CppRunner(WorkerPool& workers, const Clock& clock)
    : workers_(workers), clock_(clock), in_flight_(std::make_shared<InFlight>(clock)) {}
CppRunner::~CppRunner() { stop(); }
void CppRunner::stop() { in_flight_->close(); }

std::shared_ptr<Handler> CppRunner::handler_for(std::shared_ptr<const CppHandler> function) {
  return std::make_shared<FunctionHandler>(*this, std::move(function));
}

std::shared_ptr<Handler> CppKind::make(const BizType& type) {
  auto function = functions_.find(type.name);
  return function ? runner_.handler_for(std::move(function)) : nullptr;
}

void CppKind::stop(Duration grace) {
  workers_.stop(grace);
  runner_.stop();
}

}  // namespace tocsin
