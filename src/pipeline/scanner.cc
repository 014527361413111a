#include "pipeline/scanner.h"

#include <algorithm>
#include <utility>

namespace tocsin {

namespace {

// Jobs that are due at the same instant leave the wheel in the order in which they entered. Interleaved in small
// pieces, no lane waits for another when thousands are due at once. The rows of a piece lie together in their table, so
// a claim stays as cheap as for one lane.
void interleave_by_lane(std::vector<Candidate>& found) {
  constexpr std::uint32_t kPiece = 32;
  struct Rank {
    std::uint32_t round;
    std::uint32_t index;
  };
  std::vector<Rank> order;
  order.reserve(found.size());
  std::map<Lane, std::uint32_t> placed;
  for (std::uint32_t i = 0; i < found.size(); ++i) order.push_back({placed[found[i].lane()]++ / kPiece, i});
  std::ranges::stable_sort(order, {}, &Rank::round);
  std::vector<Candidate> sorted;
  sorted.reserve(found.size());
  for (const Rank& rank : order) sorted.push_back(found[rank.index]);
  found.swap(sorted);
}

}  // namespace

Scanner::Scanner(EngineShared& shared, JobStore& store)
    : shared_(shared),
      store_(store),
      schedule_(shared.config.scan_interval, shared.config.many_rows),
      sweeps_(shared.config.sweep_interval, shared.config.scan_interval),
      audits_(shared.config.audit_interval, shared.config.scan_interval),
      lookahead_(shared.config.lookahead, shared.config.scan_interval),
      search_pace_(shared.config.lookahead, shared.config.scan_interval),
      tenure_(shared.config.handover_time) {}

MonoTime Scanner::step(MonoTime now) {
  if (shared_.membership.is_draining()) return kWhenWoken;
  if (is_scan_requested_.exchange(false)) {
    next_scan_ = now;
    schedule_.begin_whole_cycle();
    search_pace_.search_at_once();
  }
  read_ended_backlogs(now);
  take_returned_rows();
  const bool is_continuation = has_more_ && now < next_scan_;
  if (now < next_scan_ && !is_continuation && !is_sweep_requested_) return std::min(next_scan_, promote_overflow(now));

  ranges_.clear();
  reads_.clear();
  search_.walks.clear();
  searched_shards_ = 0;
  const bool is_stopped = shared_.membership.stops_until_woken(now);
  if (is_stopped) {  // others may scan meanwhile: later everything is read from the beginning
    lanes_.clear();
    overflow_.clear();
    schedule_.begin_whole_cycle();
    search_pace_.search_at_once();
  }
  // Before the first answer the database's clock is unknown: ask for nothing but the time.
  const auto db_now = shared_.db_clock.at_least(now);
  if (db_now && !is_stopped) plan(now, *db_now, is_continuation);
  if (is_continuation && ranges_.empty()) {
    has_more_ = false;
    return std::min(next_scan_, promote_overflow(now));
  }
  const auto reply = store_.scan(ranges_, search_, watermark_.is_mark_due(now) ? WriterMark::set : WriterMark::none);
  if (!reply) return failed(now, reply.error());
  shared_.known.set_horizon(lookahead_.scan_horizon(planned_at_));
  if (!shared_.db_clock.sample(reply->asked, reply->answered, reply->db_now)) request_sweep();
  // A standby that took over may lack the last commits: it has rows again before every low-water mark and floor.
  if (std::exchange(connection_, reply->connection) != reply->connection) request_sweep();
  take(*reply);

  if (!db_now) return now;  // the clock is known now: scan
  if (has_more_ && schedule_.is_overfull() && schedule_.is_in_groups()) {
    schedule_.begin_whole_cycle();
    next_scan_ = now;
    return now;
  }
  if (!is_continuation) {
    if (schedule_.is_cycle_begin()) cycle_began_ = reply->asked;
    const bool was_in_groups = schedule_.is_in_groups();
    const Duration pause = end_turn();
    next_scan_ = reply->answered + pause;
    // The duration of the scans must not make a cycle of groups longer, but half of the time stays for other
    // statements.
    if (was_in_groups) next_scan_ = std::max(reply->asked + pause, reply->answered + pause / 2);
    if (!is_stopped && schedule_.is_cycle_begin()) {
      shared_.scans.note_cycle(cycle_began_, reply->answered);
      search_pace_.end_cycle();
    }
  }
  return has_more_ ? now : std::min(next_scan_, promote_overflow(reply->answered));
}

void Scanner::take_returned_rows() {
  reported_releases_ = shared_.unreported.reported();  // before the rows are taken
  for (const ReturnedRow& row : shared_.returned.pop_some(shared_.config.max_running))
    if (const auto cursor = lanes_.find(row.lane); cursor != lanes_.end()) cursor->second.return_to(row.due);
}

// Reads lanes whose backlog has ended, because rows that became due since the last claim, and rows due soon, are not in
// memory. Rows that another transaction locks make a backlog that ends without a claim repeatedly.
void Scanner::read_ended_backlogs(MonoTime now) {
  for (const Lane& lane : shared_.ended_backlogs.pop_some(shared_.ended_backlogs.capacity())) {
    const auto cursor = lanes_.find(lane);
    if (cursor != lanes_.end() && cursor->second.read_state().read_at_once(now, shared_.config.scan_interval / 4))
      has_more_ = true;
  }
}

MonoTime Scanner::failed(MonoTime now, const Error& error) {
  shared_.events.failed(name(), error);
  next_scan_ = now + shared_.config.retry_pause;
  has_more_ = false;
  request_sweep();
  shared_.known.set_horizon(WallTime::max());  // until a scan succeeds no hint may be refused for its time
  return next_scan_;
}

Duration Scanner::end_turn() {
  adapt_lookahead();
  const bool may_idle = shared_.is_idle() && !is_sweep_requested_ && !has_more_ && lookahead_.is_full() &&
                        shared_.membership.is_sole_member() && shared_.membership.is_listening();
  return schedule_.end_scan(may_idle);
}

void Scanner::adapt_lookahead() {
  const bool has_refused = shared_.known.take_refused();
  if (!lookahead_.adapt(shared_.known.highest_fill(), KnownJobs::kAmple, has_refused)) return;
  const WallTime end = lookahead_.window_end(planned_at_);
  for (auto& [lane, cursor] : lanes_) {
    if (cursor.window_at() < end) continue;
    if (cursor.stop_page()) overflow_.note(lane, cursor.window_at());
    cursor.move_window(end);
  }
  shared_.known.set_horizon(lookahead_.scan_horizon(planned_at_));
}

// Promotes the types of which memory has no more due jobs than one claim takes. Returns when to call it again.
MonoTime Scanner::promote_overflow(MonoTime now) {
  constexpr Duration kPause = std::chrono::milliseconds(10);
  constexpr Duration kHandOver = std::chrono::milliseconds(50);  // the wheel pushes jobs of that instant by then
  std::map<TypeId, bool> has_run_out;
  if (const auto db_now = shared_.db_clock.at_least(now)) {
    promote(*db_now - kHandOver, [&](TypeId type) {
      const auto [known, is_new] = has_run_out.try_emplace(type);
      if (is_new) known->second = shared_.due.size(type) <= shared_.config.claim_batch;
      return known->second;
    });
  }
  if (overflow_.first() == WallTime::max()) return MonoTime::max();
  return std::max(shared_.db_clock.when(overflow_.first() + kHandOver), now + kPause);
}

void Scanner::promote(WallTime due_by, const std::function<bool(TypeId)>& is_selected) {
  const auto catalog = shared_.catalog.get();
  overflow_.promote(due_by, is_selected, [&](Lane lane, WallTime overflow_from) {
    // Overdue rows before the overflow must not wait behind it.
    WallTime from = overflow_from - Duration(1);
    if (const auto cursor = lanes_.find(lane); cursor != lanes_.end()) from = std::min(from, cursor->second.low());
    const BizType* type = catalog->find(lane.type_id);
    if (type && type->catch_up_rate_per_s) from = std::max(from, due_by - shared_.config.lookahead);
    shared_.due.push_backlog({lane, {from}, Pace::fresh});
  });
}

bool Scanner::is_asked_for(const BizType& type, MonoTime now) const {
  // A busy consumer asks again soon; meanwhile the cursors of its lanes are kept.
  constexpr Duration kComesBack = std::chrono::seconds(10);
  return type.is_pull() && shared_.polls->was_asked_since(type.type_id, now - kComesBack);
}

bool Scanner::owns(Shard shard) const {
  const auto shards = shared_.shards.get();
  return std::ranges::binary_search(*shards, shard);
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

void Scanner::take(const ScanReply& reply) {
  watermark_.note(reply);
  search_method_.note(reply.walked, searched_shards_);
  if (searched_shards_ > 0) search_pace_.note_search(reply.answered - reply.asked);
  has_more_ = false;
  found_.clear();
  expired_.clear();
  new_backlogs_.clear();
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    take_rows(reads_[i], ranges_[i], reply.rows[i], reply.db_now);
    if (reads_[i].kind != ReadKind::exhausted) schedule_.note_rows(reply.rows[i].size());
  }
  const auto catalog = shared_.catalog.get();
  for (const Lane& lane : reply.lanes)
    if (const BizType* type = catalog->find(lane.type_id))
      lanes_.try_emplace(lane, planned_at_, type->is_paused(planned_at_));
  if (!reply.lanes.empty()) has_more_ = true;
  if (search_.limit > 0 && reply.lanes.size() >= static_cast<std::size_t>(search_.limit)) request_scan();
  if (!new_backlogs_.empty()) promote(planned_at_, [&](TypeId type) { return new_backlogs_.contains(type); });
  shared_.events.count(Counter::candidates, static_cast<std::int64_t>(found_.size()));
  interleave_by_lane(found_);
  const std::size_t pushed = shared_.candidates.push_some(found_);
  for (std::size_t i = pushed; i < found_.size(); ++i) shared_.known.remove(found_[i].job_id);
  for (JobId job : expired_) shared_.expired.try_push(JobId{job});
}

void Scanner::take_rows(const PlannedRead& read, const ScanRange& range, const LaneCursor::Rows& rows,
                        WallTime db_now) {
  LaneCursor& cursor = *read.cursor;
  cursor.read_state().note_read(planned_at_, rows);
  // A slow reply shows an earlier moment: rows that became due since then were not read.
  const WallTime read_until = std::min(planned_at_, db_now) - shared_.config.late_commit_margin;
  if (read.kind == ReadKind::window) return take_window(cursor, range, rows);
  if (read.kind == ReadKind::exhausted) {
    for (const ScanReply::Row& row : rows)
      if (row.is_exhausted) expired_.push_back(row.candidate.job_id);
    return cursor.exhausted().note_page(read_until, rows, rows.size() >= static_cast<std::size_t>(range.limit));
  }
  // The clock is read a moment before the transaction gets its number.
  const WallTime xmin = tenure_.has_handover_ended(range.lane.shard) ? watermark_.reached() : WallTime::min();
  const WallTime no_commits_before = xmin == WallTime::min() ? xmin : xmin - shared_.config.late_commit_margin;
  const auto audited = cursor.read_overdue(range.after, range.before, rows, read_until, no_commits_before);
  // If another server has answered, or the clock was set, no floor holds. Nor does the floor of a pull type's lane in a
  // shard of another node, which releases claims. A row that this node has just released may lie before any floor.
  if (audited > 0 && !is_sweep_requested_ && owns(range.lane.shard) &&
      shared_.unreported.is_none_beyond(reported_releases_))
    shared_.events.count(Counter::audit_found, audited);
  read.kind == ReadKind::overdue ? take_overdue(cursor, range, rows) : take_late(cursor, read.kind, range, rows);
}

void Scanner::take_window(LaneCursor& cursor, const ScanRange& range, const LaneCursor::Rows& rows) {
  const bool is_full = rows.size() >= static_cast<std::size_t>(range.limit);
  overflow_.forget_within(range.lane, range.after, range.before);
  const std::size_t found_before = found_.size();
  for (const ScanReply::Row& row : rows) {
    // The fire_at of an exhausted row is the end of its last lease: the overdue read finds it then.
    if (!row.is_exhausted && !enter(row.candidate)) {
      cursor.end_page(false);  // memory is full: continue from here in a later scan
      schedule_.note_overfull();
      return overflow_.note(range.lane, row.candidate.fire_at);
    }
    cursor.move_window(row.candidate.fire_at, row.candidate.job_id);
  }
  cursor.end_page(is_full);
  if (!is_full) return cursor.move_window(range.before);
  has_more_ = true;
  // Rows that a sweep reads again are in memory already and do not count.
  if (found_.size() - found_before > rows.size() / 2) schedule_.note_overfull();
}

void Scanner::take_overdue(LaneCursor& cursor, const ScanRange& range, const LaneCursor::Rows& rows) {
  const bool is_page_full = rows.size() >= static_cast<std::size_t>(range.limit);
  cursor.note_overdue_page(is_page_full);
  const bool is_in_backlog = shared_.due.has_backlog(range.lane);  // perhaps since the read was planned
  // Exhausted rows count: if they cannot be made dead, each read ends with them, and they hide the rows behind.
  const auto not_in_memory = static_cast<std::size_t>(std::ranges::count_if(
      rows, [&](const auto& row) { return row.is_exhausted || !shared_.known.contains(row.candidate.job_id); }));
  // Of a backlog, too, the rows are claimed from the table, from the oldest one on.
  bool is_backlog = is_page_full && (is_in_backlog || not_in_memory > rows.size() / 2);
  for (const ScanReply::Row& row : rows) {
    if (row.is_exhausted)
      expired_.push_back(row.candidate.job_id);
    else if (!is_backlog && (is_in_backlog || !enter(row.candidate)))
      is_backlog = true;
  }
  if (!is_backlog) {
    if (!is_page_full && !is_in_backlog) overflow_.forget_within(range.lane, range.after, range.before);
    return;
  }
  shared_.due.push_backlog({range.lane, {std::max(range.after, cursor.low())}, Pace::fresh});
  new_backlogs_.insert(range.lane.type_id);
}

void Scanner::take_late(const LaneCursor& cursor, ReadKind kind, const ScanRange& range, const LaneCursor::Rows& rows) {
  if (rows.empty()) return;
  if (kind == ReadKind::too_late) {
    shared_.too_late.try_push({range.lane, range.before});
    return;
  }
  bool is_backlog = rows.size() >= static_cast<std::size_t>(range.limit);  // others may lie behind exhausted rows
  for (const ScanReply::Row& row : rows) {
    if (row.is_exhausted)
      expired_.push_back(row.candidate.job_id);
    else
      is_backlog = true;
  }
  const WallTime from = std::max(range.after, cursor.low());
  if (is_backlog) shared_.due.push_backlog({range.lane, {from, range.before}, Pace::catch_up});
}

}  // namespace tocsin
