// Claimer: jobs of instant types, which are fired (claimed and finished in one call), and rows that the store refuses.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "pipeline/claimer.h"

namespace tocsin {

MonoTime Claimer::fire(MonoTime now, DueBatch batch) {
  hold_back(batch);
  const auto fired = ask([&] {
    if (!batch.backlog) return store_.fire(batch.jobs, shared_.config.node);
    const int limit = static_cast<int>(batch.limit);
    return store_.fire_due(batch.backlog->lane, batch.backlog->span, limit, shared_.config.node);
  });
  if (!fired) {
    shared_.events.failed(name(), fired.error());
    if (is_refused_row(fired.error())) return fire_in_parts(now, std::move(batch));
    // Jobs that may have been fired have used their tokens.
    if (batch.is_paced && fired.error().code != ErrorCode::in_doubt) return_unused_rate(batch, {});
    abandon_batch(batch);  // in doubt or not: fired jobs are finished, a scan finds the others
    return now + shared_.config.retry_pause;
  }
  parts_.size.note_success();
  if (!fired->empty()) parts_.n_refused = 0;
  std::map<TypeId, std::int64_t> by_type;
  for (const Fired& job : *fired) {
    shared_.events.started(job.type_id, job.started_at - job.due_at);
    ++by_type[job.type_id];
    note_clock(now, job.started_at);
  }
  shared_.events.count(Counter::finished_done, static_cast<std::int64_t>(fired->size()));
  for (const auto& [type, n] : by_type) shared_.events.ended_elsewhere(type, EventSink::Ending::done, n);
  if (batch.is_paced) return_unused_rate(batch, *fired);
  std::vector<JobId> won;
  for (const Fired& job : *fired) won.push_back(job.job_id);
  after_batch(now, batch, std::move(won), /*is_cut_short=*/false);
  return now;
}

// Keeps the first parts_.size jobs of the batch. The next step fires the others; the other rows of a backlog follow
// when its lane has its next turn.
void Claimer::hold_back(DueBatch& batch) {
  // Another lane may have no refused row.
  if (batch.backlog && std::exchange(parts_.lane, batch.backlog->lane) != batch.backlog->lane) parts_.size = {};
  const std::size_t most = parts_.size.most();
  if (batch.backlog && batch.limit > most) {
    const TypeId type = batch.backlog->lane.type_id;
    if (batch.is_paced) shared_.flow->put_back(type, batch.limit - most, batch.pace(), /*is_instant=*/true);
    batch.limit = most;
  }
  if (batch.jobs.size() <= most) return;
  parts_.rest = batch;
  parts_.rest->jobs.erase(parts_.rest->jobs.begin(), parts_.rest->jobs.begin() + static_cast<std::ptrdiff_t>(most));
  batch.jobs.erase(batch.jobs.begin() + static_cast<std::ptrdiff_t>(most), batch.jobs.end());
}

// The store refuses the batch, maybe because of one row: it is fired in smaller parts, until that row is alone.
MonoTime Claimer::fire_in_parts(MonoTime now, DueBatch batch) {
  const std::size_t n = batch.backlog ? batch.limit : batch.jobs.size();
  parts_.size.note_refused(n);
  if (batch.is_paced && (batch.backlog || n == 1)) return_unused_rate(batch, {});
  if (batch.backlog) {
    if (n > 1) {
      shared_.due.put_back(*batch.backlog);
      return now;
    }
    note_refused(now, *batch.backlog);
    return now;
  }
  if (n == 1) {
    abandon_batch(batch);
    return parts_.rest ? now : now + shared_.config.retry_pause;
  }
  if (parts_.rest) std::ranges::copy(parts_.rest->jobs, std::back_inserter(batch.jobs));
  parts_.rest = std::move(batch);
  return now;
}

// Types may have changed since the batch was made, and jobs may have become too late: then admission decides again.
MonoTime Claimer::fire_rest(MonoTime now, const AdmissionTime& time) {
  DueBatch batch = *std::exchange(parts_.rest, std::nullopt);
  const auto may_start = [&](const Candidate& job) {
    const BizType* type = time.catalog.find(job.type_id);
    return type && type->is_instant() && !type->is_paused(time.now) && !type->is_too_late(job.fire_at, time.now);
  };
  if (std::ranges::all_of(batch.jobs, may_start)) return fire(now, std::move(batch));
  if (batch.is_paced) return_unused_rate(batch, {});
  shared_.due.put_back(batch.jobs);
  return now;
}

void Claimer::note_refused(MonoTime now, const Backlog& backlog) {
  parts_.refused = backlog;
  if (is_pause_due(1)) parts_.pause_until = now + shared_.config.retry_pause;
}

// Scans and sweeps find these rows again and again, and the rows behind them must not wait. A pause after many keeps
// the claimer from trying all the time when the store refuses every row.
bool Claimer::is_pause_due(std::size_t refused) {
  constexpr std::size_t kRefusedPerPause = 100;
  const std::size_t before = std::exchange(parts_.n_refused, parts_.n_refused + refused);
  return parts_.n_refused / kRefusedPerPause > before / kRefusedPerPause;
}

MonoTime Claimer::pass_refused(MonoTime now) {
  Backlog backlog = *std::exchange(parts_.refused, std::nullopt);
  const ScanRange first{backlog.lane, backlog.span.from, backlog.span.after_id, WallTime::max(), 1};
  const auto reply = ask([&] { return store_.scan({&first, 1}); });
  if (!reply) shared_.events.failed(name(), reply.error());
  if (reply && !reply->rows.front().empty()) {
    const Candidate& row = reply->rows.front().front().candidate;
    backlog.span.begin_after({row.fire_at, row.job_id});
    shared_.due.pass(backlog);
  } else {
    end_backlog(backlog);
  }
  return reply ? now : now + shared_.config.retry_pause;
}

// The batch took rate tokens; instant types take nothing else.
void Claimer::return_unused_rate(const DueBatch& batch, const std::vector<Fired>& fired) {
  std::map<TypeId, std::size_t> unused;
  for (const Candidate& job : batch.jobs) ++unused[job.type_id];
  if (batch.backlog) unused[batch.backlog->lane.type_id] = batch.limit;
  for (const Fired& job : fired) --unused[job.type_id];
  for (const auto& [type, n] : unused) shared_.flow->put_back(type, n, batch.pace(), /*is_instant=*/true);
}

}  // namespace tocsin
