#include "pipeline/scanner.h"

#include <algorithm>
#include <utility>

namespace tocsin {

namespace {

// Jobs that are due at the same instant leave the wheel in the order they came: dealt in small hands, every shard gets
// on when thousands are due at once. A hand lies together in its table, so that claiming stays as cheap as in one
// piece.
void deal_by_lanes(std::vector<Candidate>& found) {
  constexpr std::uint32_t kHand = 32;
  struct Card {
    std::uint32_t round;
    std::uint32_t index;
  };
  std::vector<Card> order;
  order.reserve(found.size());
  std::map<Lane, std::uint32_t> dealt;
  for (std::uint32_t i = 0; i < found.size(); ++i) order.push_back({dealt[found[i].lane()]++ / kHand, i});
  std::ranges::stable_sort(order, {}, &Card::round);
  std::vector<Candidate> sorted;
  sorted.reserve(found.size());
  for (const Card& card : order) sorted.push_back(found[card.index]);
  found.swap(sorted);
}

}  // namespace

MonoTime Scanner::step(MonoTime now) {
  if (shared_.is_draining) return kWhenWoken;
  if (is_scan_requested_.exchange(false)) {
    next_scan_ = now;
    begin_whole_cycle();
  }
  const bool is_continuation = has_more_ && now < next_scan_;
  if (now < next_scan_ && !is_continuation && !is_sweep_requested_)
    return std::min(next_scan_, call_up_left_behind(now));

  ranges_.clear();
  asked_.clear();
  const bool is_cut_off = shared_.stops_cut_off(now);
  // Others may have scanned meanwhile: later everything is read from the beginning.
  if (is_cut_off) {
    lanes_.clear();
    begin_whole_cycle();
  }
  // Before the first answer the database's clock is unknown: ask for nothing but the time.
  const auto db_now = shared_.db_clock.at_least(now);
  if (db_now && !is_cut_off) plan(now, *db_now, is_continuation);
  if (is_continuation && ranges_.empty()) {
    has_more_ = false;
    return std::min(next_scan_, call_up_left_behind(now));
  }
  auto reply = store_.scan(ranges_);
  if (!reply) {
    shared_.events.failed(name(), reply.error());
    next_scan_ = now + shared_.config.retry_pause;
    has_more_ = false;
    request_sweep();
    shared_.sight = WallTime::max();  // nobody knows when the next scan reads something
    return next_scan_;
  }
  shared_.sight = end_of_sight();
  const bool is_first = !db_now;
  if (!shared_.db_clock.sample(reply->asked, reply->answered, reply->db_now)) request_sweep();
  // A standby that took over and lacks the last commits has rows again behind every mark.
  if (std::exchange(connection_, reply->connection) != reply->connection) request_sweep();

  mark(*reply);
  has_more_ = false;
  found_.clear();
  expired_.clear();
  new_backlogs_.clear();
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    take(asked_[i], ranges_[i], reply->rows[i], reply->db_now);
    rows_ += reply->rows[i].size();
  }
  if (!new_backlogs_.empty()) call_up(planned_at_, [&](TypeId type) { return new_backlogs_.contains(type); });
  shared_.events.count(Counter::candidates, static_cast<std::int64_t>(found_.size()));
  deal_by_lanes(found_);
  const std::size_t pushed = shared_.candidates.push_some(found_);
  for (std::size_t i = pushed; i < found_.size(); ++i) shared_.known.remove(found_[i].job_id);
  for (JobId job : expired_) shared_.expired.try_push(std::move(job));

  if (is_first) return now;  // the clock is known now: scan
  if (has_more_ && is_overfull_ && slices_ > 1) {
    begin_whole_cycle();
    next_scan_ = now;
    return now;
  }
  if (!is_continuation) {
    const bool was_sliced = slices_ > 1;
    adapt_reach();
    const Duration pause = end_turn();
    next_scan_ = reply->answered + pause;
    // What the slices of a cycle take must not make it longer; but the database has half of the time for others.
    if (was_sliced) next_scan_ = std::max(reply->asked + pause, reply->answered + pause / 2);
    if (!is_cut_off && slice_ == 0) shared_.scanned_at = reply->answered.time_since_epoch().count();
  }
  return has_more_ ? now : std::min(next_scan_, call_up_left_behind(reply->answered));
}

void Scanner::begin_whole_cycle() {
  slices_ = 1;
  slice_ = 0;
}

// Returns how long until the next. No lane waits longer than the interval: after a read of all lanes the first slice
// follows a slice of the interval later, and so does a read of all lanes after the last slice.
Duration Scanner::end_turn() {
  constexpr std::size_t kRest = 2;  // intervals: what enters the window then still has half of the lookahead
  const std::size_t before = slices_;
  std::size_t intervals = 1;
  if (++slice_ == slices_) {
    const std::size_t rows = std::exchange(rows_, 0);
    const bool is_whole = std::exchange(is_overfull_, false) || rows < shared_.config.many_rows;
    slices_ = is_whole ? 1 : kSlices;
    slice_ = 0;
    const bool finds_nothing =
        rows == 0 && before == 1 && shared_.is_idle() && !is_sweep_requested_ && reach_ == shared_.config.lookahead;
    if (finds_nothing && shared_.is_alone && shared_.is_listening) intervals = kRest;
    intervals_ += intervals;
  }
  return shared_.config.scan_interval * static_cast<Duration::rep>(intervals) /
         static_cast<Duration::rep>(std::max(before, slices_));
}

// No cursor lies beyond the new end: what lies behind it, and was read, is read again.
void Scanner::adapt_reach() {
  constexpr double kNearlyFull = 0.875;
  constexpr Duration::rep kStepsToRecover = 32;
  const Duration lookahead = shared_.config.lookahead;
  const Duration least = std::min(lookahead, shared_.config.scan_interval * 3 / 2);
  const bool has_refused = shared_.has_refused.exchange(false);
  double fill = 0;
  for (const auto& type : shared_.catalog.get()->types) fill = std::max(fill, shared_.known.fill(type->type_id));
  if (fill < KnownJobs::kAmple && !has_refused) {
    reach_ = std::min(lookahead, reach_ + lookahead / kStepsToRecover);
  } else if ((fill > kNearlyFull || has_refused) && reach_ > least) {
    reach_ = least;
    for (auto& [lane, state] : lanes_) {
      if (state.cursor < planned_at_ + reach_) continue;
      if (std::exchange(state.is_page_full, false)) leave_behind(state, state.cursor);
      state.cursor = planned_at_ + reach_;
      state.cursor_id = 0;
    }
    shared_.sight = end_of_sight();
  }
}

// No cursor lies beyond it, ever: it moves on before the scan that reads so far is sent, and back when one was
// answered. A little further, because the hint of a retry names a time some milliseconds after its row's.
WallTime Scanner::end_of_sight() const {
  if (reach_ == shared_.config.lookahead) return WallTime::max();
  return planned_at_ + reach_ + shared_.config.scan_interval / 4;
}

void Scanner::leave_behind(LaneState& lane, WallTime from) {
  lane.left_behind = std::min(lane.left_behind, from);
  first_left_behind_ = std::min(first_left_behind_, from);
}

// Of the types of which memory has, by now, no more than a claim takes. Returns when to look again.
MonoTime Scanner::call_up_left_behind(MonoTime now) {
  constexpr Duration kPause = std::chrono::milliseconds(10);
  constexpr Duration kHandOver = std::chrono::milliseconds(50);  // the wheel's, of what was due at the same instant
  std::map<TypeId, bool> has_run_out;
  if (const auto db_now = shared_.db_clock.at_least(now)) {
    call_up(*db_now - kHandOver, [&](TypeId type) {
      const auto [known, is_new] = has_run_out.try_emplace(type);
      if (is_new) known->second = shared_.due.size(type) <= shared_.config.claim_batch;
      return known->second;
    });
  }
  if (first_left_behind_ == WallTime::max()) return MonoTime::max();
  return std::max(shared_.db_clock.when(first_left_behind_ + kHandOver), now + kPause);
}

// Of the types that are meant, the lanes whose rows are due by then become backlog, all of them: none gets ahead.
void Scanner::call_up(WallTime due_by, const std::function<bool(TypeId)>& is_meant) {
  if (first_left_behind_ > due_by) return;
  const auto catalog = shared_.catalog.get();
  first_left_behind_ = WallTime::max();
  for (auto& [lane, state] : lanes_) {
    if (state.left_behind <= due_by && is_meant(lane.type_id)) {
      // Others that are overdue must not wait behind them.
      WallTime from = std::min(state.low, std::exchange(state.left_behind, WallTime::max()) - Duration(1));
      const BizType* type = catalog->find(lane.type_id);
      if (type && type->catch_up_rate_per_s) from = std::max(from, due_by - shared_.config.lookahead);
      shared_.due.push_backlog({lane, {from}, Pace::fresh});
    }
    first_left_behind_ = std::min(first_left_behind_, state.left_behind);
  }
}

bool Scanner::reads_every_shard_of(const BizType& type, MonoTime now) const {
  // A consumer that works on what it got comes back; its lanes need not be read from the beginning each time.
  constexpr Duration kComesBack = std::chrono::seconds(10);
  return type.is_pull() && shared_.polls.was_asked_since(type.type_id, now - kComesBack);
}

void Scanner::plan(MonoTime now, WallTime db_now, bool is_continuation) {
  const auto catalog = shared_.catalog.get();
  const auto shards = shared_.shards.get();
  const auto all_shards = shared_.all_shards.get();
  planned_at_ = db_now;
  const WallTime horizon = planned_at_ + reach_;
  shared_.sight = std::max(shared_.sight.load(), end_of_sight());
  if (!is_continuation) {
    const bool sweep_all = is_sweep_requested_.exchange(false);
    if (sweep_all) {  // the clock, or the database itself, may be another
      marks_.clear();
      settled_ = WallTime::min();
      begin_whole_cycle();
    }
    std::erase_if(lanes_, [&](const auto& entry) {
      const Lane& lane = entry.first;
      if (sweep_all || is_held(*catalog, db_now, lane.type_id)) return true;
      return !std::ranges::binary_search(*shards, lane.shard) &&
             !(std::ranges::binary_search(*all_shards, lane.shard) &&
               reads_every_shard_of(*catalog->find(lane.type_id), now));
    });
    if (slice_ == 0) {
      plan_sweep();
      plan_audit();
    }
  }
  for (const auto& type : catalog->types) {
    if (type->is_paused(db_now)) continue;
    const bool has_room = shared_.known.room(type->type_id) > 0;
    is_overfull_ = is_overfull_ || !has_room;
    for (const Shard shard : reads_every_shard_of(*type, now) ? *all_shards : *shards) {
      const Lane lane{shard, type->type_id};
      auto [it, is_new] = lanes_.try_emplace(lane);
      LaneState& state = it->second;
      if (is_new) state.slice = last_slice_++ % kSlices;
      const bool has_turn = !is_continuation && state.slice % slices_ == slice_;
      if (!has_room && std::exchange(state.is_page_full, false)) leave_behind(state, state.cursor);
      if (state.left_behind <= db_now && shared_.due.has_backlog(lane)) state.left_behind = WallTime::max();
      // What is overdue belongs to the other read.
      if (is_new || state.cursor < db_now) {
        state.cursor = db_now;
        state.cursor_id = 0;
      }
      const bool reads_window = has_room && state.cursor < horizon && (has_turn || state.is_page_full);
      const bool reads_overdue = has_turn && (type->is_pull() || !shared_.due.has_backlog(lane));
      const bool is_all_alike = !type->drop_older_than && !type->catch_up_rate_per_s;
      if (reads_window && reads_overdue && is_all_alike && state.is_quiet) {
        ask({lane, state.low, 0, horizon, static_cast<int>(shared_.config.window_page)}, Part::both);
        continue;
      }
      if (has_turn) state.is_quiet = reads_window && reads_overdue;
      if (reads_window) {
        ask({lane, state.cursor, state.cursor_id, horizon, static_cast<int>(shared_.config.window_page)}, Part::window);
      }
      if (has_turn) plan_overdue(*type, lane, state, db_now);
    }
  }
}

void Scanner::ask(const ScanRange& range, Part part) {
  ranges_.push_back(range);
  asked_.push_back({range.lane, part});
}

// In the order of time, so that the first read is the one that moves the low-water mark.
void Scanner::plan_overdue(const BizType& type, const Lane& lane, const LaneState& state, WallTime db_now) {
  constexpr int kFew = 8;  // exhausted ones may be among them
  WallTime from = state.low;
  if (type.drop_older_than) {
    const WallTime edge = db_now - *type.drop_older_than;
    if (edge > from) ask({lane, from, 0, edge, 1}, Part::too_late);
    from = std::max(from, edge - Duration(1));
  }
  if (type.catch_up_rate_per_s) {
    const WallTime edge = db_now - shared_.config.lookahead;
    if (edge > from && !shared_.due.has_backlog(lane, Pace::catch_up)) ask({lane, from, 0, edge, kFew}, Part::catch_up);
    from = std::max(from, edge - Duration(1));
  }
  // A backlog is claimed straight from the table, exhausted rows found there; but nobody may come for a pull type.
  if (type.is_pull() || !shared_.due.has_backlog(lane))
    ask({lane, from, 0, db_now, static_cast<int>(shared_.config.overdue_page)}, Part::overdue);
}

void Scanner::plan_sweep() {
  // Some of the lanes per interval, so that no single scan pays for all dead entries at once.
  const auto rounds =
      static_cast<std::size_t>(std::max<std::int64_t>(1, shared_.config.sweep_interval / shared_.config.scan_interval));
  while (swept_ < intervals_) {
    const std::size_t turn = ++swept_ % rounds;
    for (auto& [lane, state] : lanes_) {
      if (static_cast<std::size_t>(lane.shard) % rounds != turn) continue;
      if (std::exchange(state.is_page_full, false)) leave_behind(state, state.cursor);
      state.low = state.floor;
      state.cursor = WallTime::min();
      state.cursor_id = 0;
    }
  }
}

// The floor rests on an assumption about every writer: its transaction has an id before its clock is read. The audit
// assumes nothing: some of the lanes per interval are read from the beginning of time.
void Scanner::plan_audit() {
  const auto rounds =
      static_cast<std::size_t>(std::max<std::int64_t>(1, shared_.config.audit_interval / shared_.config.scan_interval));
  while (audited_ < intervals_) {
    const std::size_t turn = ++audited_ % rounds;
    for (auto& [lane, state] : lanes_) {
      if (static_cast<std::size_t>(lane.shard) % rounds != turn) continue;
      state.audited_up_to = state.floor;
      state.low = WallTime::min();
    }
  }
}

// Jobs are never due before the moment they are written. What this scan could not see was written by transactions that
// had not begun to write when an earlier scan began, if that scan's next writer is no younger than today's oldest one.
void Scanner::mark(const ScanReply& reply) {
  marks_.push_back({reply.began, reply.next_writer});
  if (marks_.size() > kMostMarks) marks_.pop_front();
  while (!marks_.empty() && marks_.front().next_writer <= reply.oldest_writer) {
    // The clock is read a moment before the transaction gets its number.
    settled_ = marks_.front().began - shared_.config.late_commit_margin;
    marks_.pop_front();
  }
}

bool Scanner::enter(const Candidate& candidate) {
  switch (shared_.known.add(candidate.job_id, candidate.type_id, candidate.fire_at)) {
    case KnownJobs::Added::yes:
    case KnownJobs::Added::moved:
      found_.push_back(candidate);
      return true;
    case KnownJobs::Added::already_known:
      return true;
    case KnownJobs::Added::full:
      shared_.events.count(Counter::refused);
      return false;
  }
  return false;
}

void Scanner::take_window(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows) {
  lane.is_page_full = rows.size() >= static_cast<std::size_t>(range.limit);
  if (range.after <= lane.left_behind && lane.left_behind < range.before) lane.left_behind = WallTime::max();
  const std::size_t found_before = found_.size();
  for (const ScanReply::Row& row : rows) {
    // An exhausted row shows the end of its last lease, which has not come: the overdue read will see it then.
    if (!row.is_exhausted && !enter(row.candidate)) {
      lane.is_page_full = false;  // no room: go on from here in a later scan
      is_overfull_ = true;
      leave_behind(lane, row.candidate.fire_at);
      return;
    }
    lane.cursor = row.candidate.fire_at;
    lane.cursor_id = row.candidate.job_id;
  }
  if (lane.is_page_full) {
    has_more_ = true;
    // A sweep reads again what memory has.
    if (found_.size() - found_before > rows.size() / 2) is_overfull_ = true;
  } else {
    lane.cursor = range.before;
    lane.cursor_id = 0;
  }
}

void Scanner::take(const Asked& asked, const ScanRange& range, const std::vector<ScanReply::Row>& rows,
                   WallTime db_now) {
  LaneState& lane = lanes_[asked.lane];
  if (!rows.empty()) lane.is_quiet = false;
  if (asked.part == Part::window) return take_window(lane, range, rows);
  if (asked.part == Part::both) return take_both(lane, range, rows, db_now);
  count_audited(lane, range, rows);
  if (range.after <= lane.low) move_low(lane, range, rows, db_now);
  if (asked.part == Part::overdue)
    take_overdue(lane, range, rows);
  else
    take_late(asked.part, range, rows);
}

// Before the floor there is no row, or the floor is wrong.
void Scanner::count_audited(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows) {
  if (lane.audited_up_to == WallTime::min() || range.after > WallTime::min()) return;
  const WallTime up_to = std::exchange(lane.audited_up_to, WallTime::min());
  if (is_sweep_requested_) return;  // another server has answered, or the clock was set: no floor holds
  const auto n = std::ranges::count_if(rows, [&](const auto& row) { return row.candidate.fire_at < up_to; });
  if (n == 0) return;
  shared_.events.count(Counter::audit_found, n);
  lane.floor = WallTime::min();
}

void Scanner::take_late(Part part, const ScanRange& range, const std::vector<ScanReply::Row>& rows) {
  if (rows.empty()) return;
  if (part == Part::too_late) {
    shared_.too_late.try_push({range.lane, range.before});
    return;
  }
  bool is_backlog = false;
  for (const ScanReply::Row& row : rows) {
    if (row.is_exhausted)
      expired_.push_back(row.candidate.job_id);
    else
      is_backlog = true;
  }
  if (is_backlog) shared_.due.push_backlog({range.lane, {range.after, range.before}, Pace::catch_up});
}

void Scanner::move_low(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows,
                       WallTime db_now) {
  // A slow reply tells of a moment long past: what became due since then was not looked at.
  lane.low = std::min(range.before, std::min(planned_at_, db_now) - shared_.config.late_commit_margin);
  const WallTime first = rows.empty() ? WallTime::max() : rows.front().candidate.fire_at - Duration(1);
  lane.low = std::min(lane.low, first);
  if (range.after <= lane.floor) lane.floor = std::max(lane.floor, std::min({settled_, first, lane.low}));
}

void Scanner::take_overdue(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows) {
  const bool is_page_full = rows.size() >= static_cast<std::size_t>(range.limit);
  const auto strangers = static_cast<std::size_t>(std::ranges::count_if(
      rows, [&](const auto& row) { return !row.is_exhausted && !shared_.known.contains(row.candidate.job_id); }));
  const bool is_in_backlog = shared_.due.has_backlog(range.lane);
  bool is_backlog = is_page_full && strangers > rows.size() / 2;
  for (const ScanReply::Row& row : rows) {
    if (row.is_exhausted) {
      expired_.push_back(row.candidate.job_id);
    } else if (!is_backlog && !is_in_backlog && !enter(row.candidate)) {
      is_backlog = true;
    }
  }
  if (!is_backlog) {
    const bool is_all_in_memory = !is_in_backlog && !is_page_full;
    if (is_all_in_memory && range.after <= lane.left_behind && lane.left_behind < range.before)
      lane.left_behind = WallTime::max();
    return;
  }
  shared_.due.push_backlog({range.lane, {std::max(range.after, lane.low)}, Pace::fresh});
  new_backlogs_.insert(range.lane.type_id);
}

void Scanner::take_both(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows,
                        WallTime db_now) {
  const auto part = std::ranges::partition_point(
      rows, [&](const ScanReply::Row& row) { return row.candidate.fire_at < planned_at_; });
  const std::vector<ScanReply::Row> overdue(rows.begin(), part);
  const std::vector<ScanReply::Row> window(part, rows.end());
  const int rest = range.limit - static_cast<int>(overdue.size());
  const ScanRange before{range.lane, range.after, range.after_id, planned_at_, range.limit};
  count_audited(lane, before, overdue);
  move_low(lane, before, overdue, db_now);
  take_overdue(lane, before, overdue);
  take_window(lane, {range.lane, lane.cursor, lane.cursor_id, range.before, rest}, window);
}

}  // namespace tocsin
