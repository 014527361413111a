#include "pipeline/runner.h"

#include <algorithm>

#include "base/assert.h"

namespace tocsin {
namespace {

constexpr Duration kNoHandlerPause = std::chrono::seconds(5);

void put(EngineShared& shared, FinishedAttempt run) {
  const bool is_pushed = shared.outcomes.try_push(std::move(run));
  TOCSIN_ASSERT(is_pushed);  // the limiter counts them, and it is no larger than the queue
}

}  // namespace

MonoTime Runner::step(MonoTime now) {
  auto jobs = shared_.claimed.pop_some(kBatch);
  for (ClaimedJob& job : jobs) {
    job.start_by = std::min(job.start_by, now + (job.lease_deadline - now) / 2);
    start(now, std::make_shared<const ClaimedJob>(std::move(job)));
  }
  return jobs.size() == kBatch ? now : kWhenWoken;
}

void Runner::start(MonoTime now, std::shared_ptr<const ClaimedJob> claimed) {
  if (shared_.membership.is_draining()) {
    put(shared_, {std::move(claimed), Outcome::done(), true});
    return;
  }
  if (now >= claimed->start_by) {
    // Another node may run it by now, or it may be cancelled; the token decides. If not, the attempt does not count: a
    // slow claim must not make a job with one attempt dead.
    shared_.events.count(Counter::expired_starts);
    put(shared_, {std::move(claimed), Outcome::done(), true});
    return;
  }
  const auto catalog = shared_.catalog.get();
  const BizType* type = catalog->find(claimed->job.type_id);
  Handler* handler = type ? find_handler_(*type) : nullptr;
  if (!handler) {
    put(shared_, {std::move(claimed), Outcome::not_started(kNoHandlerPause)});
    return;
  }
  const ClaimedJob& job = *claimed;
  handler->start(job, [&shared = shared_, now, claimed = std::move(claimed)](Outcome outcome) {
    const bool has_ended = outcome.kind != Outcome::Kind::not_started && outcome.kind != Outcome::Kind::handed_over;
    if (has_ended) shared.flow->return_slot(claimed->job.type_id);
    put(shared, {claimed, std::move(outcome), false, now, has_ended});
  });
}

}  // namespace tocsin
