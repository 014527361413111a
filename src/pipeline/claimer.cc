#include "pipeline/claimer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/assert.h"

namespace tocsin {
namespace {

constexpr Duration kSecondaryLooksAgain = std::chrono::milliseconds(50);
// After a slow claim: how much later than its type's drop_older_than a job may start.
constexpr Duration kDropMargin = std::chrono::seconds(1);
constexpr Duration kGatherTime = std::chrono::milliseconds(50);  // how long a consumer waits for more jobs
constexpr auto kNoMoreRetries = std::numeric_limits<decltype(Candidate::retries)>::max();

std::vector<JobId> ids_of(const std::vector<Candidate>& jobs) {
  std::vector<JobId> ids;
  ids.reserve(jobs.size());
  for (const Candidate& job : jobs) ids.push_back(job.job_id);
  return ids;
}

}  // namespace

// Called right after the previous claim, so the elapsed time is its duration.
void Claimer::note_duration(MonoTime now) {
  if (claimed_at_) is_slow_ = now - *std::exchange(claimed_at_, std::nullopt) > shared_.config.start_window / 2;
}

MonoTime Claimer::step(MonoTime now) {
  if (const auto [asked, shown] = std::exchange(shown_, {}); shown != WallTime{})
    shared_.db_clock.sample_if_ahead(asked, now, shown);
  if (won_) {
    note_duration(now);
    Won won = *std::exchange(won_, std::nullopt);
    deliver_to_polls(now, won.batch, std::move(won.jobs));
    return unresolved_ ? now + shared_.config.retry_pause : now;
  }
  if (unresolved_) return resolve(now);
  if (gathering_) return send(now, *std::exchange(gathering_, std::nullopt));
  if (shared_.membership.is_draining() || shared_.membership.stops_until_woken(now)) return kWhenWoken;
  if (shared_.has_stuck_outcomes(now)) return now + shared_.config.retry_pause;
  if (parts_.refused) return now < parts_.pause_until ? parts_.pause_until : pass_refused(now);
  const auto db_now = shared_.db_clock.at_least(now);
  if (!db_now) return kWhenWoken;
  const auto catalog = shared_.catalog.get();
  if (parts_.rest) return fire_rest(now, {*catalog, *db_now, now});
  note_duration(now);
  DueBatch batch = shared_.admission.next_batch(shared_.config.claim_batch, {*catalog, *db_now, now}, role_);
  shared_.known.remove(batch.dropped);
  if (batch.empty()) {
    if (batch.has_more_to_drop) return now;
    // Only the primary claimer serves every type at any time, so only it knows that nothing is due.
    if (role_ == ClaimerRole::primary) shared_.polls->note_nothing_due(shared_.poll_engine, now);
    if (batch.is_limited_to_light)
      return now + kSecondaryLooksAgain;  // no wake-up comes when hot types may be served again
    return role_ == ClaimerRole::primary ? batch.again : kWhenWoken;
  }
  return batch.is_instant ? fire(now, std::move(batch)) : claim(now, *db_now, std::move(batch));
}

// A crash of the database undoes a claim that is not on disk, and a cancel may be acknowledged before this node sees
// any error. Attempts that start outside of the database therefore wait for the disk.
bool Claimer::must_be_durable(const DueBatch& batch, const TypeCatalog& catalog) const {
  if (batch.is_pull || is_slow_) return true;
  const auto starts_outside = [&](TypeId type) {
    const BizType* known = catalog.find(type);
    return !known || !known->starts_in_database();
  };
  if (shared_.config.async_claims) return false;
  if (batch.backlog) return starts_outside(batch.backlog->lane.type_id);
  return std::ranges::any_of(batch.jobs, starts_outside, &Candidate::type_id);
}

MonoTime Claimer::claim(MonoTime now, WallTime db_now, DueBatch batch) {
  const auto catalog = shared_.catalog.get();
  const ClaimTicket ticket{random_.int64(), shared_.config.node, must_be_durable(batch, *catalog), db_now};
  ClaimCall sent{std::move(batch), ticket, now, is_slow_, catalog, {}, {}};
  if (const auto& backlog = sent.batch.backlog) sent.slots[backlog->lane.type_id] = sent.batch.limit;
  for (const Candidate& job : sent.batch.jobs) ++sent.slots[job.type_id];
  return send(now, std::move(sent));
}

MonoTime Claimer::send(MonoTime now, ClaimCall sent) {
  Result<Claims> claims = Claims{};
  const auto ttr_of = [&](TypeId type) {
    const BizType* known = sent.catalog->find(type);
    return known ? known->ttr : BizType{}.ttr;
  };
  if (const auto& backlog = sent.batch.backlog) {
    const Lane lane = backlog->lane;
    const Duration ttr = sent.batch.is_pull ? sent.batch.polls.front().poll->ttr : ttr_of(lane.type_id);
    const int limit = static_cast<int>(sent.batch.limit);
    claims = ask([&] { return store_.claim_due(lane, backlog->span, limit, ttr, sent.ticket); });
  } else {
    std::vector<Duration> ttr;
    if (!sent.batch.is_pull)
      for (const Candidate& job : sent.batch.jobs) ttr.push_back(ttr_of(job.type_id));
    for (const PollShare& share : sent.batch.polls) ttr.insert(ttr.end(), share.n, share.poll->ttr);
    claims = ask([&] { return store_.claim(sent.batch.jobs, ttr, sent.ticket); });
  }
  if (claims) {
    if (!claims->won.empty()) parts_.n_refused = 0;
    for (const ClaimedJob& claimed : claims->won) note_clock(now, claimed.job.gmt_modified);
    sent.is_cut_short = claims->is_cut_short;
    take_out(sent.batch, *claims);
    const bool is_paused = is_pause_due(claims->refused.size());
    accept(std::move(sent), now, std::move(claims->won));
    claimed_at_ = now;
    return is_paused ? now + shared_.config.retry_pause : now;
  }
  shared_.events.failed(name(), claims.error());
  claimed_at_.reset();  // of a lane gathered before: the time of a call that failed tells nothing
  // Consumers get what was gathered, or return to the queue, so that their deadlines hold while the database is down.
  if (!sent.gathered.empty())
    won_ = Won{sent.batch, std::exchange(sent.gathered, {})};
  else
    requeue_polls(sent.batch.polls);
  sent.batch.polls.clear();
  if (claims.error().code == ErrorCode::in_doubt) {
    shared_.events.count(Counter::claims_in_doubt);
    unresolved_ = std::move(sent);
    shared_.claims_in_doubt.add();
  } else {
    for (const auto& [type, n] : sent.slots) shared_.release_unused(type, n, sent.batch.pace());
    if (sent.batch.backlog && is_refused_row(claims.error())) {
      note_refused(now, *sent.batch.backlog);
      return now;
    }
    abandon_batch(sent.batch);
  }
  return won_ ? now : now + shared_.config.retry_pause;
}

// Untried jobs return to the queue. Refused ones leave memory; a scan finds them.
void Claimer::take_out(DueBatch& batch, const Claims& claims) {
  const auto untried = std::span(batch.jobs).last(claims.untried);
  shared_.due.put_back(untried);
  batch.jobs.resize(batch.jobs.size() - claims.untried);
  for (const RefusedClaim& refused : claims.refused) {
    shared_.events.failed(name(), refused.why);
    const auto job = std::ranges::find(batch.jobs, refused.job_id, &Candidate::job_id);
    if (job != batch.jobs.end()) job->retries = kNoMoreRetries;
  }
}

MonoTime Claimer::resolve(MonoTime now) {
  const DueBatch& batch = unresolved_->batch;
  auto won = ask([&] {
    return batch.backlog ? store_.claimed_with(unresolved_->ticket, batch.backlog->lane)
                         : store_.claimed_with(unresolved_->ticket, ids_of(batch.jobs));
  });
  if (!won) {
    shared_.events.failed(name(), won.error());
    return now + shared_.config.retry_pause;
  }
  ClaimCall sent = *std::exchange(unresolved_, std::nullopt);
  shared_.claims_in_doubt.resolve();
  claimed_at_ = sent.at;
  accept(std::move(sent), now, std::move(*won));
  return now;
}

void Claimer::accept(ClaimCall sent, MonoTime asked, std::vector<ClaimedJob> won) {
  auto& unused = sent.slots;
  for (ClaimedJob& claimed : won) {
    const TypeId type = claimed.job.type_id;
    const BizType* known = sent.catalog->find(type);
    if (known) claimed.job.biz_type = known->name;
    // Trust in the lease is counted from before the request was sent. A lease shorter than the margin must leave time
    // to start.
    const Duration ttr = known ? known->ttr : BizType{}.ttr;
    claimed.lease_deadline = sent.at;
    if (!sent.batch.is_pull) add_lease(claimed, ttr);
    if (!sent.is_slow)
      claimed.start_by = sent.at + shared_.config.start_window;
    else if (known && known->drop_older_than && claimed.fire_at_before)
      claimed.start_by = shared_.db_clock.when(*claimed.fire_at_before + *known->drop_older_than + kDropMargin);
    claimed.is_catch_up = sent.batch.pace() == Pace::catch_up;
    TOCSIN_ASSERT(unused[type] > 0);
    --unused[type];
  }
  std::vector<JobId> ids;
  ids.reserve(won.size());
  for (const ClaimedJob& claimed : won) ids.push_back(claimed.job.job_id);
  after_batch(sent.at, sent.batch, std::move(ids), sent.is_cut_short);
  const Pace pace = sent.batch.pace();
  if (sent.batch.is_pull) {
    if (gather(sent, asked, won)) return;
    won_ = Won{std::move(sent.batch), std::move(sent.gathered)};
  } else {
    for (ClaimedJob& claimed : won) {
      const bool is_pushed = shared_.claimed.try_push(std::move(claimed));
      TOCSIN_ASSERT(is_pushed);  // the limiter counts them, and it is no larger than the queue
    }
  }
  for (const auto& [type, n] : unused) shared_.release_unused(type, n, pace);
}

bool Claimer::gather(ClaimCall& sent, MonoTime asked, std::vector<ClaimedJob>& won) {
  const std::size_t n = won.size();
  std::ranges::move(won, std::back_inserter(sent.gathered));
  if (!sent.batch.backlog || sent.batch.polls.empty() || n >= sent.batch.limit || asked - sent.at > kGatherTime ||
      shared_.membership.is_draining() || shared_.membership.is_stopped(asked))
    return false;
  const TypeId type = sent.batch.backlog->lane.type_id;
  const auto catalog = shared_.catalog.get();
  const auto db_now = shared_.db_clock.at_least(asked);
  if (!db_now || is_held(*catalog, *db_now, type)) return false;
  auto next = shared_.due.next_lane(type, sent.batch.pace());
  if (!next) return false;
  if (const auto age = catalog->find(type)->drop_older_than)
    next->span.begin_after(std::max(next->span.after(), {*db_now - *age, JobId{0}}));
  sent.batch.backlog = next;
  sent.batch.limit -= n;
  sent.ticket.seed = random_.int64();
  gathering_ = std::move(sent);
  return true;
}

// The consumer of a job is chosen before the claim, because it decides the length of the lease; for a backlog the jobs
// are not known then. Jobs won for a closed connection, or by a claim that was in doubt, are released and the attempt
// is not counted. So are jobs whose lease may be over already: another node may run them, or they may be cancelled. A
// poll that got only such jobs rests: if its leases are shorter than a claim takes, it would be claimed for in a loop,
// and the polls behind it never.
void Claimer::deliver_to_polls(MonoTime now, const DueBatch& batch, std::vector<ClaimedJob> won) {
  std::vector<std::vector<ClaimedJob>> answers(batch.polls.size());
  std::vector<bool> is_late(batch.polls.size(), false);
  std::unordered_map<JobId, std::size_t> asker;
  std::vector<std::size_t> poll_of;  // by position in the batch: the index of the job's poll
  for (std::size_t i = 0; i < batch.polls.size(); ++i) poll_of.insert(poll_of.end(), batch.polls[i].n, i);
  for (std::size_t i = 0; i < batch.jobs.size() && i < poll_of.size(); ++i) asker[batch.jobs[i].job_id] = poll_of[i];
  for (std::size_t i = 0; i < won.size(); ++i) {
    if (poll_of.empty()) {
      release_claim(std::move(won[i]));
      continue;
    }
    const std::size_t poll = batch.backlog ? poll_of[i] : asker.at(won[i].job.job_id);
    add_lease(won[i], batch.polls[poll].poll->ttr);
    if (won[i].lease_deadline <= now) {
      is_late[poll] = true;
      release_claim(std::move(won[i]));
    } else {
      answers[poll].push_back(std::move(won[i]));
    }
  }
  std::vector<PollPtr> unserved, late;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Poll& poll = *batch.polls[i].poll;
    if (answers[i].empty()) {
      (is_late[i] ? late : unserved).push_back(batch.polls[i].poll);
    } else if (poll.is_gone()) {
      for (ClaimedJob& claimed : answers[i]) release_claim(std::move(claimed));
    } else {
      answer_poll(poll, std::move(answers[i]));
    }
  }
  shared_.polls->put_back(unserved);
  shared_.polls->put_back_later(late, now + shared_.config.retry_pause);
}

void Claimer::add_lease(ClaimedJob& claimed, Duration ttr) const {
  claimed.lease_deadline += ttr - std::min(shared_.config.lease_margin, ttr / 4);
}

void Claimer::answer_poll(const Poll& poll, std::vector<ClaimedJob> jobs) {
  const std::size_t n = jobs.size();
  for (const ClaimedJob& claimed : jobs) shared_.note_started(claimed);
  const auto catalog = shared_.catalog.get();
  const BizType* known = catalog->find(poll.type_id);
  if (!known || !known->max_running) {
    poll.answer(std::move(jobs));
    return shared_.release(poll.type_id, n);
  }
  // Before the answer: the consumer may acknowledge the jobs at once.
  std::vector<std::pair<Lease, WallTime>> leases;
  leases.reserve(jobs.size());
  for (const ClaimedJob& claimed : jobs) leases.push_back({{claimed.job.job_id, claimed.token}, claimed.job.fire_at});
  shared_.hand_over(poll.type_id, leases);
  poll.answer(std::move(jobs));
}

void Claimer::release_claim(ClaimedJob claimed) {
  auto job = std::make_shared<const ClaimedJob>(std::move(claimed));
  const bool is_pushed = shared_.outcomes.try_push({std::move(job), Outcome::done(), true});
  TOCSIN_ASSERT(is_pushed);  // the limiter counts them, and it is no larger than the queue
}

void Claimer::requeue_polls(const std::vector<PollShare>& shares) {
  std::vector<PollPtr> polls;
  polls.reserve(shares.size());
  for (const PollShare& share : shares) polls.push_back(share.poll);
  shared_.polls->put_back(polls);
}

// `asked`: when the claim was sent. `is_cut_short`: see Claims.
void Claimer::after_batch(MonoTime asked, const DueBatch& batch, std::vector<JobId> won, bool is_cut_short) {
  shared_.events.count(Counter::claims_won, static_cast<std::int64_t>(won.size()));
  if (!batch.backlog) return forget_or_retry(asked, batch, std::move(won));
  shared_.events.count(Counter::backlog_claims, static_cast<std::int64_t>(won.size()));
  if (won.size() == batch.limit || is_cut_short) return shared_.due.put_back(*batch.backlog);
  end_backlog(*batch.backlog);
}

void Claimer::end_backlog(const Backlog& backlog) {
  shared_.due.end_backlog(backlog);
  if (backlog.pace == Pace::fresh) shared_.ended_backlogs.try_push(Lane(backlog.lane));
}

// A job that was not won although it had only just become due may have been claimed too early: the database's clock
// runs slower than the estimate, or was set back a little. It goes back on the wheel for some milliseconds, a few
// times. Without that its next claim would wait for a scan.
void Claimer::forget_or_retry(MonoTime asked, const DueBatch& batch, std::vector<JobId> won) {
  constexpr Duration kMostOff = std::chrono::milliseconds(50);  // more is a step, which the next sample shows
  constexpr Duration kFirstPause = std::chrono::milliseconds(2);
  // 2 + 4 + 8 + 16 ms. Of pull types several nodes may claim the same jobs, and all but one lose.
  const int most_retries = batch.is_pull ? 1 : 4;
  std::ranges::sort(won);
  const auto claimed_at = shared_.db_clock.at_least(asked);
  std::vector<Candidate> gone;
  for (Candidate job : batch.jobs) {
    const bool is_lost = !std::ranges::binary_search(won, job.job_id);
    const bool may_be_early = is_lost && claimed_at && *claimed_at - job.fire_at < kMostOff;
    if (may_be_early && job.retries < most_retries) {
      job.fire_at = *claimed_at + kFirstPause * (1 << job.retries++);
      if (shared_.candidates.try_push(Candidate(job))) continue;
    }
    if (is_lost) shared_.events.count(Counter::claims_lost);
    gone.push_back(job);
  }
  shared_.known.remove(gone);
}

// Rows that were not claimed are still pending: the next scan finds them.
void Claimer::abandon_batch(const DueBatch& batch) {
  shared_.known.remove(batch.jobs);
  if (batch.backlog) end_backlog(*batch.backlog);
}

}  // namespace tocsin
