#include "pipeline/finisher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "base/utf8.h"
#include "core/retry_policy.h"

namespace tocsin {
namespace {

// Whether this node scans the shard, as far as it knows, so that it finds a row that is due before the marks of its
// lane. Another node may have passed that time with its scans.
bool is_scanned_here(const EngineShared& shared, Shard shard, MonoTime now) {
  return !shared.membership.is_lease_lost(now) && std::ranges::binary_search(*shared.shards.get(), shard);
}

bool has_old_time(const FinishRequest& request) { return request.delay < Duration(0); }

// Before each write: released jobs that this node does not scan any more are due now, for a request may have waited.
void drop_old_times(const EngineShared& shared, std::span<FinishRequest> requests, MonoTime now) {
  for (FinishRequest& request : requests)
    if (has_old_time(request) && !is_scanned_here(shared, shard_of(request.job_id), now)) request.delay = Duration(0);
}

}  // namespace

MonoTime Finisher::step(MonoTime now) {
  hint_retries(now);
  note_reported_releases();
  // Also while outcomes are kept, so that locked rows delay no other outcomes. The limiter bounds both.
  const bool is_quiet = shared_.outcomes.size() == 0;
  take_outcomes(now);
  // In turns: each try is a call for one row, so those of many rows would leave no time for other outcomes.
  const bool is_turn_of_others = std::exchange(has_tried_set_aside_, false) && !requests_.empty();
  if (!set_aside_.empty() && set_aside_.front().try_at <= now && !is_turn_of_others) {
    has_tried_set_aside_ = true;
    return write_set_aside(now);
  }
  const MonoTime again = set_aside_.empty() ? kWhenWoken : set_aside_.front().try_at;
  if (requests_.empty()) return is_quiet ? again : now;
  const std::size_t n = std::min(requests_.size(), part_size_.most());
  drop_old_times(shared_, {requests_.data(), n}, now);
  const auto replies = write(now, {requests_.data(), n});
  if (!replies) return handle_failure(now, n, replies.error());
  TOCSIN_ASSERT(replies->size() == n);
  part_size_.note_success();
  note_answer(n);
  // Busy requests go behind those that were not sent yet.
  std::vector<FinishRequest> busy;
  std::vector<Origin> busy_origins;
  for (std::size_t i = 0; i < n; ++i) {
    if ((*replies)[i] != FinishReply::busy) {
      settle(requests_[i], origins_[i], (*replies)[i]);
      continue;
    }
    busy.push_back(std::move(requests_[i]));
    busy_origins.push_back(origins_[i]);
  }
  const auto asked = static_cast<std::ptrdiff_t>(n);
  requests_.erase(requests_.begin(), requests_.begin() + asked);
  origins_.erase(origins_.begin(), origins_.begin() + asked);
  std::ranges::move(busy, std::back_inserter(requests_));
  std::ranges::copy(busy_origins, std::back_inserter(origins_));
  return busy.size() < n ? now : std::min(now + shared_.config.retry_pause, again);
}

Result<std::vector<FinishReply>> Finisher::write(MonoTime now, std::span<const FinishRequest> requests) {
  shared_.answers.note_request(now);
  if (std::ranges::any_of(requests, has_old_time)) shared_.unreported.note_write();
  return answers_.call(shared_.outcome_patience(), [&] { return store_.finish(requests, shared_.config.node); });
}

void Finisher::note_answer(std::size_t n) {
  behind_ -= std::min(behind_, n);
  if (behind_ == 0) shared_.answers.note_answer();
}

void Finisher::note_waiting(MonoTime now) {
  while (shared_.outcomes.size() > 0) take_outcomes(now);  // what ended during the call has waited, too
  behind_ = requests_.size();
}

void Finisher::take_outcomes(MonoTime now) {
  for (const FinishedAttempt& run : shared_.outcomes.pop_some(shared_.config.finish_batch)) {
    const ClaimedJob& claimed = *run.claimed;
    const bool is_unstarted = run.is_released || run.outcome.kind == Outcome::Kind::not_started;
    if (!is_unstarted) shared_.note_started(claimed);
    const Origin origin{claimed.job.type_id, claimed.is_catch_up ? Pace::catch_up : Pace::fresh, claimed.lease_deadline,
                        run.is_slot_free, claimed.fire_at_before};
    if (run.outcome.kind == Outcome::Kind::handed_over) {  // nothing to write: the claim continues as the lease
      shared_.hand_over(claimed.job.type_id, {{{claimed.job.job_id, claimed.token}, claimed.job.fire_at}});
      continue;
    }
    FinishRequest request = request_for(now, run);
    report_end(now, run, request.kind);
    if (run.outcome.is_written) {
      settle(request, origin, FinishReply::applied);
      continue;
    }
    requests_.push_back(std::move(request));
    origins_.push_back(origin);
  }
}

MonoTime Finisher::handle_failure(MonoTime now, std::size_t n, const Error& error) {
  shared_.events.failed(name(), error);
  // An Error in_doubt is handled in the same way: outcomes that were applied answer `stale` the next time.
  // The lock of a table is no answer: while another transaction holds it, nothing is written.
  if (!is_refused_row(error)) {
    note_waiting(now);
    return now + shared_.config.retry_pause;
  }
  if (n > 1) {
    // No answer for the others: many refused rows take many calls, and all that is kept waits meanwhile.
    if (behind_ == 0) note_waiting(now);
    part_size_.note_refused(n);
    return now;
  }
  note_answer(1);
  shared_.events.count(Counter::set_aside);
  set_aside_.push_back({std::move(requests_.front()), origins_.front(), now + kSetAsidePause});
  requests_.erase(requests_.begin());
  origins_.erase(origins_.begin());
  return now;
}

MonoTime Finisher::write_set_aside(MonoTime now) {
  SetAside next = std::move(set_aside_.front());
  set_aside_.pop_front();
  drop_old_times(shared_, {&next.request, 1}, now);
  const auto reply = write(now, {&next.request, 1});
  const bool is_answered = reply || is_refused_row(reply.error());
  is_answered ? note_answer(0) : note_waiting(now);
  if (reply && reply->front() != FinishReply::busy) {
    settle(next.request, next.origin, reply->front());
    return now;
  }
  if (!reply) shared_.events.failed(name(), reply.error());
  // The values stay refused. Once the lease is over the row is due again, with this attempt counted.
  if (!reply && reply.error().code == ErrorCode::invalid && now >= next.origin.lease_deadline) {
    settle(next.request, next.origin, FinishReply::stale);
    return now;
  }
  next.try_at = now + kSetAsidePause;
  set_aside_.push_back(std::move(next));
  return is_answered ? now : now + shared_.config.retry_pause;
}

FinishRequest Finisher::request_for(MonoTime now, const FinishedAttempt& run) {
  const ClaimedJob& claimed = *run.claimed;
  FinishRequest request{
      claimed.job.job_id, claimed.token, FinishRequest::Kind::done, Duration(0),
      // A handler's text may hold bytes that the store refuses, which would delay the other outcomes of the batch.
      storable(run.outcome.message, kLongestJobError)};
  if (run.is_released || run.outcome.kind == Outcome::Kind::not_started) {
    request.kind = FinishRequest::Kind::release_claim;
    request.delay = std::min(release_delay(now, run), kLongestBackoff);
    return request;
  } else if (run.outcome.kind == Outcome::Kind::dead ||
             (run.outcome.kind == Outcome::Kind::retry && claimed.job.attempts >= claimed.job.max_attempts)) {
    request.kind = FinishRequest::Kind::dead;
  } else if (run.outcome.kind == Outcome::Kind::retry) {
    const auto catalog = shared_.catalog.get();
    const BizType* type = catalog->find(claimed.job.type_id);
    request.kind = FinishRequest::Kind::retry;
    const auto& wish = run.outcome.retry_after;
    if (wish && !run.outcome.is_lower_bound)
      request.delay = *wish;
    else
      request.delay = std::max(wish.value_or(Duration(0)),
                               backoff_delay(type ? type->backoff : Backoff{}, claimed.job.attempts, random_));
  }
  // So may its delay, if no database can store that time.
  request.delay = std::clamp(request.delay, Duration(0), kLongestBackoff);
  return request;
}

void Finisher::report_end(MonoTime now, const FinishedAttempt& run, FinishRequest::Kind kind) {
  if (run.started == MonoTime{} || kind == FinishRequest::Kind::release_claim) return;
  using Ending = EventSink::Ending;
  const Ending ending = kind == FinishRequest::Kind::done   ? Ending::done
                        : kind == FinishRequest::Kind::dead ? Ending::dead
                                                            : Ending::retry;
  shared_.events.ended(run.claimed->job.type_id, ending, now - run.started);
}

// A job that did not start keeps its time, and so its place before younger ones and its lateness. Scans may have passed
// that time, so this node hints the job to itself. A job that other nodes scan is due now, where sweeps find it: those
// of shards that are not this node's, and those of pull types, whose lanes every node with consumers reads.
Duration Finisher::release_delay(MonoTime now, const FinishedAttempt& run) const {
  if (run.outcome.retry_after && *run.outcome.retry_after > Duration(0)) return *run.outcome.retry_after;
  const ClaimedJob& claimed = *run.claimed;
  const auto db_now = shared_.db_clock.at_least(now);
  const auto catalog = shared_.catalog.get();
  const BizType* type = catalog->find(claimed.job.type_id);
  if (!claimed.fire_at_before || !db_now || shared_.membership.is_draining() || !type || type->is_pull() ||
      !is_scanned_here(shared_, claimed.job.shard(), now))
    return Duration(0);
  return std::clamp(*claimed.fire_at_before - *db_now, -kLongestBackoff, Duration(0));
}

void Finisher::settle(const FinishRequest& request, const Origin& origin, FinishReply reply) {
  const TypeId type = origin.type;
  if (request.kind == FinishRequest::Kind::release_claim)
    shared_.release_unused(type, 1, origin.pace);  // it takes no token of a rate
  else if (origin.is_slot_free)
    shared_.release_ended(type);
  else
    shared_.release(type, 1);
  const bool is_due_again = request.kind == FinishRequest::Kind::release_claim ||
                            (request.kind == FinishRequest::Kind::retry && reply != FinishReply::stale);
  // `stale` may also mean that an earlier call wrote it, whose answer was lost.
  if (is_due_again && request.delay < shared_.config.lookahead)
    retries_.push_back({request.job_id, type, request.delay, origin.due_before});
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
    case FinishRequest::Kind::release_claim:
      shared_.events.count(Counter::released);
      break;
  }
}

// The database's clock shows at least the time of the write, so none of these leaves the wheel too early, unless that
// clock was set back. A scan would find them, too, up to a scan interval late.
void Finisher::hint_retries(MonoTime now) {
  if (retries_.empty()) return;
  const auto owned = shared_.shards.get();
  const auto db_now = shared_.db_clock.at_least(now);
  for (const Retry& retry : std::exchange(retries_, {})) {
    if (!db_now) continue;
    constexpr Duration kSlack = std::chrono::milliseconds(1);  // db_now is a lower bound
    const Candidate job{retry.job_id, retry.type_id, *db_now + retry.delay + kSlack};
    const bool is_mine = std::ranges::binary_search(*owned, shard_of(retry.job_id));
    // Memory may drop it before it is claimed: then a scan must find its row.
    if (is_mine && retry.delay < Duration(0) && retry.due_before)
      shared_.returned.try_push({{shard_of(retry.job_id), retry.type_id}, *retry.due_before});
    // Another node may own the shard while this node has not heard of it.
    if (!is_mine || shared_.membership.is_lease_lost(now)) {
      if (shared_.config.tell_owner) shared_.config.tell_owner(job);
      continue;
    }
    if (shared_.hint(job)) continue;
    // No scan reads rows before the low-water mark: the whole lane is claimed from the table.
    if (retry.delay < Duration(0)) shared_.due.push_backlog({{shard_of(retry.job_id), retry.type_id}, {}});
  }
}

void Finisher::note_reported_releases() {
  if (!shared_.unreported.has_any()) return;
  // What is kept may be written: its answer may be lost.
  const auto is_kept = [](const SetAside& each) { return has_old_time(each.request); };
  if (std::ranges::none_of(requests_, has_old_time) && std::ranges::none_of(set_aside_, is_kept))
    shared_.unreported.note_reported();
}

}  // namespace tocsin
