#include "admission/admission.h"

#include <algorithm>

namespace tocsin {

DueBatch JobAdmission::next_batch(std::size_t most, const AdmissionTime& time, ClaimerRole role) {
  DueQueue::Locked locked(due_);
  DueBatch batch;
  Round round{locked, time, batch};
  sort_types(round);
  // The second condition ends it if the database's clock was set back.
  const bool is_light_time = time.now < light_until_ && light_until_ - time.now <= kLightOnlyTime;
  if (role == ClaimerRole::priority || (role == ClaimerRole::secondary && is_light_time)) {
    if (role == ClaimerRole::priority) most = std::min(most, hot_above_);
    const bool found = serve(round, light, most);
    batch.is_limited_to_light = !found && role == ClaimerRole::secondary && round.has_hot;
    return batch;
  }
  // In turns: fresh jobs must not wait behind a long backlog, nor the backlog for ever behind fresh jobs.
  constexpr LoadClass kTurns[4][kClasses] = {
      {light, hot, backlog}, {backlog, light, hot}, {hot, light, backlog}, {backlog, hot, light}};
  if (locked.types().empty()) return batch;
  for (const LoadClass load : kTurns[turn_++ % 4]) {
    if (serve(round, load, most)) break;
  }
  return batch;
}

// Drops jobs that must not start, moves jobs that may not start yet to the backlog, and lines up the rest.
void JobAdmission::sort_types(Round& round) {
  DueQueue::Types& types = round.due.types();
  std::size_t limited_types = 0;
  for (auto it = types.begin(); it != types.end();) {
    if (is_held(round.time.catalog, round.time.now, it->first)) {
      const std::size_t before = types.size();
      it = round.due.erase(it, round.may_drop(), round.batch.dropped);
      round.batch.has_more_to_drop = round.batch.has_more_to_drop || types.size() == before;
      continue;
    }
    const BizType& type = *round.time.catalog.find(it->first);
    if (memory_.is_limited(type, it->second.jobs.size())) {
      ++limited_types;
      spill(round, it->second, type);
    }
    if (it->second.is_empty()) {
      it = types.erase(it);
      continue;
    }
    add_ready(round, it->second, type);
    ++it;
  }
  limited_types_ = limited_types;
}

void JobAdmission::spill(Round& round, DueQueue::TypeQueue& queue, const BizType& type) {
  const WallTime now = round.time.now;
  std::size_t keep = memory_.jobs_per_type(limited_types_);
  if (type.is_pull()) {
    const bool is_asked = polls_.demand(type.type_id) > 0;
    if (queue.asked_at == WallTime{} || is_asked || now < queue.asked_at) queue.asked_at = now;
    if (now - queue.asked_at > kUnaskedStay) keep = 0;
  }
  // The youngest first. The backlog begins at the beginning of time, because older rows of the lane may leave memory
  // later. If the type has a catch-up pace, rows late by then are claimed at that pace.
  const DueSpan span{type.catch_up_rate_per_s ? now - lookahead_ : WallTime::min()};
  while (queue.jobs.size() > keep) round.due.spill_back(queue, span, round.batch.dropped);
}

void JobAdmission::add_ready(Round& round, DueQueue::TypeQueue& queue, const BizType& type) {
  const bool is_hot = queue.jobs.size() > hot_above_;
  round.has_hot = round.has_hot || is_hot || !queue.backlog.empty();
  if (type.is_pull() && polls_.demand(type.type_id) == 0) return;
  if (type.pool) {
    if (!flow_.has_free(*type.pool)) {
      if (flow_.is_shared_by_engines())
        round.batch.again = std::min(round.batch.again, round.time.local_now + kLookAgain);
      return;
    }
    ++round.waiting[type.pool.get()];
  }
  const auto line_up = [&](LoadClass load) {
    Line& line = round.lines[load][form_of(type)];
    line.ids.push_back(type.type_id);
    line.types.push_back({&queue, &type});
  };
  if (!queue.jobs.empty()) line_up(is_hot ? hot : light);
  if (!queue.backlog.empty()) line_up(backlog);
}

bool JobAdmission::serve(Round& round, LoadClass load, std::size_t most) {
  for (std::size_t i = 1; i <= kForms; ++i) {
    const std::size_t form = (forms_turn_[load] + i) % kForms;
    if (round.lines[load][form].size() == 0) continue;
    if (load == backlog ? !take_backlog(round, form, most) : !take_jobs(round, load, form, most)) continue;
    forms_turn_[load] = form;
    if (load == light && round.has_hot) light_until_ = round.time.now + kLightOnlyTime;
    return true;
  }
  return false;
}

// Takes equal parts for all types of the line, in their turns. Other types get the part that a type does not use.
bool JobAdmission::take_jobs(Round& round, LoadClass load, std::size_t form, std::size_t most) {
  Line& line = round.lines[load][form];
  TurnOrder& turn = types_turn_[load][form];
  DueBatch& batch = round.batch;
  std::vector<std::size_t> open;  // types that may have more, in the order of their turns
  const std::size_t first = turn.first(line.ids);
  for (std::size_t i = 0; i < line.size(); ++i) open.push_back((first + i) % line.size());
  while (!open.empty() && batch.jobs.size() < most) {
    const std::size_t part = std::max<std::size_t>(1, (most - batch.jobs.size()) / open.size());
    const bool is_first_pass = open.size() == line.size();
    std::vector<std::size_t> next;
    for (const std::size_t i : open) {
      if (batch.jobs.size() == most) break;
      const std::size_t want = std::min(part, most - batch.jobs.size());
      const std::size_t n = take_from(round, line.types[i], want);
      if (n == want && !line.types[i].queue->jobs.empty()) next.push_back(i);
      if (n > 0 && is_first_pass) turn.served(line.ids[i]);
    }
    open = std::move(next);
  }
  return !batch.jobs.empty();
}

std::size_t JobAdmission::take_from(Round& round, const Ready& ready, std::size_t want) {
  const BizType& type = *ready.type;
  const std::size_t fit = drop_unfit(round, ready, want);
  const std::size_t n = take_slots(round, type, fit, Pace::fresh, /*one_ttr=*/false);
  if (n == 0) return 0;
  round.batch.is_instant = type.is_instant();
  round.batch.is_pull = type.is_pull();
  round.batch.is_paced = round.batch.is_paced || type.rate_per_s;
  round.due.take_front(*ready.queue, n, round.batch.jobs);
  return n;
}

// Drops jobs that are too late, or that a backlog covers, from the first `want` of the queue. Returns how many at its
// head are left to be claimed.
std::size_t JobAdmission::drop_unfit(Round& round, const Ready& ready, std::size_t want) {
  std::deque<Candidate>& jobs = ready.queue->jobs;
  if (!ready.type->drop_older_than && !round.due.has_backlog()) return std::min(want, jobs.size());
  const auto is_unfit = [&](const Candidate& job) {
    return ready.type->is_too_late(job.fire_at, round.time.now) || round.due.is_in_backlog(job);
  };
  const auto first = jobs.begin(), last = first + static_cast<std::ptrdiff_t>(std::min(want, jobs.size()));
  if (std::none_of(first, last, is_unfit)) return std::min(want, jobs.size());
  std::vector<Candidate> good;
  while (!jobs.empty() && good.size() < want) {
    const bool is_dropped = is_unfit(jobs.front());
    if (is_dropped && round.may_drop() == 0) {
      round.batch.has_more_to_drop = true;
      break;
    }
    round.due.take_front(*ready.queue, 1, is_dropped ? round.batch.dropped : good);
  }
  round.due.return_front(*ready.queue, good);
  return good.size();
}

bool JobAdmission::take_backlog(Round& round, std::size_t form, std::size_t most) {
  const Line& line = round.lines[backlog][form];
  TurnOrder& turn = types_turn_[backlog][form];
  const std::size_t first = turn.first(line.ids);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::size_t at = (first + i) % line.size();
    if (!take_lane(round, line.types[at], most)) continue;
    turn.served(line.ids[at]);
    return true;
  }
  return false;
}

// Tries the first lane of each pace. If the first one must wait, all lanes of that pace must wait.
bool JobAdmission::take_lane(Round& round, const Ready& ready, std::size_t most) {
  const BizType& type = *ready.type;
  DueBatch& batch = round.batch;
  auto& lanes = ready.queue->backlog;
  for (const Pace pace : {Pace::fresh, Pace::catch_up}) {
    const auto lane = std::ranges::find(lanes, pace, &Backlog::pace);
    if (lane == lanes.end()) continue;
    batch.limit = take_slots(round, type, std::min(most, kBacklogPiece), pace, /*one_ttr=*/true);
    if (batch.limit == 0) continue;
    batch.is_instant = type.is_instant();
    batch.is_pull = type.is_pull();
    batch.is_paced = type.rate_per_s || type.catch_up_rate_per_s;
    batch.backlog = round.due.take_lane(*ready.queue, lane);
    if (type.drop_older_than)
      batch.backlog->span.begin_after(
          std::max(batch.backlog->span.after(), {round.time.now - *type.drop_older_than, JobId{0}}));
    return true;
  }
  return false;
}

std::size_t JobAdmission::take_slots(Round& round, const BizType& type, std::size_t want, Pace pace, bool one_ttr) {
  if (type.is_pull()) want = std::min(want, polls_.demand(type.type_id));
  if (want == 0) return 0;
  std::optional<Duration> lease;
  if (type.is_pull() && type.max_running) lease = polls_.longest_ttr(type.type_id);
  const std::size_t waiting = type.pool ? round.waiting[type.pool.get()] : 1;
  const FlowControl::Taken taken = flow_.take(type, want, pace, round.time.local_now, lease, waiting);
  round.batch.again = std::min(round.batch.again, taken.again);
  if (type.is_instant()) return taken.n;
  // Jobs of a pull type hold slots until consumers have them; max_running limits those that consumers work on.
  const std::size_t slots = limiter_.acquire(type.type_id, taken.n);
  std::size_t used = slots;
  if (type.is_pull()) {
    used = 0;
    for (PollShare& share : polls_.take(type.type_id, slots, one_ttr)) {
      used += share.n;
      round.batch.polls.push_back(std::move(share));
    }
    limiter_.release(type.type_id, slots - used);  // a consumer has disconnected meanwhile
  }
  flow_.put_back(type.type_id, taken.n - used, pace, /*is_instant=*/false);
  return used;
}

}  // namespace tocsin
