#include "pipeline/finisher.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/utf8.h"
#include "core/retry_policy.h"

namespace tocsin {
MonoTime Finisher::step(MonoTime now) {
  hint_retries(now);
  // Next to what is kept, so that rows which somebody holds locked delay no others. The limiter bounds both.
  const auto runs = shared_.outcomes.pop_some(shared_.config.finish_batch);
  for (const FinishedRun& run : runs) {
    const bool is_unstarted = run.is_given_back || run.outcome.kind == Outcome::Kind::not_started;
    if (!is_unstarted) shared_.note_started(*run.claimed);
    const Origin origin{run.claimed->job.type_id, run.claimed->is_catch_up ? Pace::catch_up : Pace::fresh};
    if (run.outcome.kind == Outcome::Kind::handed_over) {  // nothing to write: the claim goes on as the lease
      const ClaimedJob& claimed = *run.claimed;
      shared_.hand_over(claimed.job.type_id, {{{claimed.job.job_id, claimed.token}, claimed.job.fire_at}});
      continue;
    }
    FinishRequest request = request_for(now, run);
    tell_end(now, run, request.kind);
    if (run.outcome.is_written) {
      settle(request, origin, FinishReply::applied);
      continue;
    }
    requests_.push_back(std::move(request));
    origins_.push_back(origin);
  }
  if (requests_.empty()) return runs.empty() ? kWhenWoken : now;
  const auto replies = store_.finish(requests_, shared_.config.node);
  if (!replies) {
    // In doubt is no different: what was applied answers `stale` the next time and stays as it is.
    shared_.events.failed(name(), replies.error());
    return now + shared_.config.retry_pause;
  }
  TOCSIN_ASSERT(replies->size() == requests_.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if ((*replies)[i] == FinishReply::busy) {
      if (kept != i) {
        requests_[kept] = std::move(requests_[i]);
        origins_[kept] = origins_[i];
      }
      ++kept;
    } else {
      settle(requests_[i], origins_[i], (*replies)[i]);
    }
  }
  const bool has_progress = kept < requests_.size();
  requests_.resize(kept);
  origins_.resize(kept);
  return has_progress ? now : now + shared_.config.retry_pause;
}

FinishRequest Finisher::request_for(MonoTime now, const FinishedRun& run) {
  const ClaimedJob& claimed = *run.claimed;
  FinishRequest request{
      claimed.job.job_id, claimed.token, FinishRequest::Kind::done, Duration(0),
      // A handler may say anything; text that the store refuses would hold up every other outcome for ever.
      storable(run.outcome.message, kLongestJobError)};
  if (run.is_given_back || run.outcome.kind == Outcome::Kind::not_started) {
    request.kind = FinishRequest::Kind::give_back;
    request.delay = std::min(give_back_delay(now, run), kLongestBackoff);
    return request;
  } else if (run.outcome.kind == Outcome::Kind::dead ||
             (run.outcome.kind == Outcome::Kind::retry && claimed.job.attempts >= claimed.job.max_attempts)) {
    request.kind = FinishRequest::Kind::dead;
  } else if (run.outcome.kind == Outcome::Kind::retry) {
    const auto catalog = shared_.catalog.get();
    const BizType* type = catalog->find(claimed.job.type_id);
    request.kind = FinishRequest::Kind::retry;
    const auto& wish = run.outcome.retry_after;
    if (wish && !run.outcome.is_least)
      request.delay = *wish;
    else
      request.delay = std::max(wish.value_or(Duration(0)),
                               backoff_delay(type ? type->backoff : Backoff{}, claimed.job.attempts, random_));
  }
  // A handler may wish for any time; one that no database can store would hold up every other outcome, too.
  request.delay = std::clamp(request.delay, Duration(0), kLongestBackoff);
  return request;
}

void Finisher::tell_end(MonoTime now, const FinishedRun& run, FinishRequest::Kind kind) {
  if (run.started == MonoTime{} || kind == FinishRequest::Kind::give_back) return;
  using Ending = EventSink::Ending;
  const Ending ending = kind == FinishRequest::Kind::done   ? Ending::done
                        : kind == FinishRequest::Kind::dead ? Ending::dead
                                                            : Ending::retry;
  shared_.events.ended(run.claimed->job.type_id, ending, now - run.started);
}

// A job that did not start keeps its time, and with it its place before younger ones and its lateness. Behind the
// reader no scan would find it, so this node hints it to itself; what it cannot hint is due now. So is what another
// node is to run: it may have read the lane already.
Duration Finisher::give_back_delay(MonoTime now, const FinishedRun& run) const {
  if (run.outcome.retry_after && *run.outcome.retry_after > Duration(0)) return *run.outcome.retry_after;
  const ClaimedJob& claimed = *run.claimed;
  const auto db_now = shared_.db_clock.at_least(now);
  const auto owned = shared_.shards.get();
  if (!claimed.fire_at_before || !db_now || shared_.is_draining ||
      !std::ranges::binary_search(*owned, claimed.job.shard()))
    return Duration(0);
  return std::clamp(*claimed.fire_at_before - *db_now, -kLongestBackoff, Duration(0));
}

void Finisher::settle(const FinishRequest& request, const Origin& origin, FinishReply reply) {
  const TypeId type = origin.type;
  if (request.kind == FinishRequest::Kind::give_back)
    shared_.release_unused(type, 1, origin.pace);  // it takes no token of a rate
  else
    shared_.release(type, 1);
  const bool is_due_again = request.kind == FinishRequest::Kind::give_back ||
                            (request.kind == FinishRequest::Kind::retry && reply != FinishReply::stale);
  // Stale may also mean: written by a try whose answer was lost.
  if (is_due_again && request.delay < shared_.config.lookahead)
    retries_.push_back({request.job_id, type, request.delay});
  if (reply == FinishReply::stale) {
    shared_.events.count(Counter::stale_finishes);
    return;
  }
  switch (request.kind) {
    case FinishRequest::Kind::done:
      shared_.events.count(Counter::finished_done);
      break;
    case FinishRequest::Kind::dead:
      shared_.events.count(Counter::finished_dead);
      break;
    case FinishRequest::Kind::retry:
      shared_.events.count(Counter::finished_retry);
      break;
    case FinishRequest::Kind::give_back:
      shared_.events.count(Counter::given_back);
      break;
  }
}

// By now the database's clock shows at least what it did when they were written, so none of them comes out of the wheel
// too early, unless that clock was set back. The scan would find them too, a scan interval late.
void Finisher::hint_retries(MonoTime now) {
  if (retries_.empty()) return;
  const auto owned = shared_.shards.get();
  const auto db_now = shared_.db_clock.at_least(now);
  for (const Retry& retry : std::exchange(retries_, {})) {
    if (!db_now || !std::ranges::binary_search(*owned, shard_of(retry.job_id))) continue;
    constexpr Duration kSlack = std::chrono::milliseconds(1);  // by which that least may be behind
    if (shared_.hint({retry.job_id, retry.type_id, *db_now + retry.delay + kSlack})) continue;
    // No scan reads what lies behind the reader: the whole lane is claimed from the table.
    if (retry.delay < Duration(0)) shared_.due.push_backlog({{shard_of(retry.job_id), retry.type_id}, {}});
  }
}

}  // namespace tocsin
