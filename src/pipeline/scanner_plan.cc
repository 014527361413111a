// Scanner::plan(): which ranges the next statement reads and where it searches for lanes.
#include <algorithm>
#include <limits>

#include "pipeline/scanner.h"

namespace tocsin {

void Scanner::plan(MonoTime now, WallTime db_now, bool is_continuation) {
  planned_at_ = db_now;
  shared_.known.raise_horizon(lookahead_.scan_horizon(db_now));
  if (!is_continuation) begin_turn(now, db_now);
  const auto catalog = shared_.catalog.get();
  const auto shards = shared_.shards.get();
  for (auto& [lane, cursor] : lanes_) {
    const BizType* type = catalog->find(lane.type_id);
    if (!type || type->is_paused(db_now) != cursor.is_paused()) continue;
    const bool has_turn =
        cursor.read_state().is_read_at_once() || (!is_continuation && is_turn_of(lane.shard, *shards));
    if (!cursor.is_paused())
      plan_lane(*type, lane, cursor, has_turn);
    else if (has_turn)
      plan_paused(lane, cursor);
  }
  if (!is_continuation) plan_search(now, *shards);
}

bool Scanner::is_turn_of(Shard shard, const std::vector<Shard>& shards) const {
  return schedule_.is_turn_of(static_cast<std::size_t>(std::ranges::lower_bound(shards, shard) - shards.begin()));
}

// Forgets the lanes that must not be read (foreign, or paused and resumed since), and those without rows.
void Scanner::begin_turn(MonoTime now, WallTime db_now) {
  if (is_sweep_requested_.exchange(false)) {  // the clock was set, or another server answers: no position holds
    watermark_.reset();
    schedule_.begin_whole_cycle();
    search_pace_.search_at_once();
    lanes_.clear();
    overflow_.clear();
  }
  if (schedule_.is_cycle_begin()) search_pace_.begin_cycle(now, are_hints_complete());
  const auto catalog = shared_.catalog.get();
  const auto shards = shared_.shards.get();
  const auto all_shards = shared_.all_shards.get();
  // Another node may have written to a gained shard: what was read of it before does not count.
  const auto gained = shared_.gained.take();
  for (const Shard shard : gained) tenure_.begin_anew(shard, now);
  tenure_.note(shards, now);
  const auto is_read = [&](const Lane& lane) {
    if (std::ranges::binary_search(*shards, lane.shard)) return true;
    return std::ranges::binary_search(*all_shards, lane.shard) && is_asked_for(*catalog->find(lane.type_id), now);
  };
  std::erase_if(lanes_, [&](const auto& entry) {
    const auto& [lane, cursor] = entry;
    const BizType* type = catalog->find(lane.type_id);
    if (!type || type->is_paused(db_now) != cursor.is_paused() || !is_read(lane) || gained.contains(lane.shard)) {
      overflow_.forget(lane);
      return true;
    }
    return cursor.read_state().may_be_forgotten(db_now, watermark_.reached()) && !overflow_.contains(lane) &&
           !shared_.due.has_backlog(lane) && !shared_.due.has_backlog(lane, Pace::catch_up);
  });
  if (schedule_.is_cycle_begin()) begin_sweeps_and_audits();
}

// No hint is missed while notifications arrive and memory refuses none for its time, but those of a paused type are
// refused, and nothing tells the scanner when one resumes at its time.
bool Scanner::are_hints_complete() const {
  const auto catalog = shared_.catalog.get();
  const bool resumes_by_itself = std::ranges::any_of(
      catalog->types, [&](const auto& type) { return type->paused_until && type->is_paused(planned_at_); });
  return shared_.membership.is_listening() && lookahead_.is_full() && !resumes_by_itself;
}

void Scanner::begin_sweeps_and_audits() {
  // Some of the shards per interval, so that no single scan pays for all dead index entries at once.
  while (sweeps_.next(schedule_.intervals())) {
    for (auto& [lane, cursor] : lanes_) {
      if (!sweeps_.is_turn_of(lane.shard)) continue;
      if (cursor.stop_page()) overflow_.note(lane, cursor.window_at());
      cursor.begin_sweep();
    }
  }
  while (audits_.next(schedule_.intervals())) {
    for (auto& [lane, cursor] : lanes_)
      if (audits_.is_turn_of(lane.shard)) cursor.begin_audit();
  }
}

void Scanner::plan_lane(const BizType& type, const Lane& lane, LaneCursor& cursor, bool has_turn) {
  const bool has_capacity = shared_.known.available(type.type_id) > 0;
  if (!has_capacity) {
    schedule_.note_overfull();
    if (cursor.stop_page()) overflow_.note(lane, cursor.window_at());
  }
  const bool is_backlog = shared_.due.has_backlog(lane);
  if (is_backlog) overflow_.forget_within(lane, WallTime::min(), planned_at_ + Duration(1));
  // Overdue rows belong to the overdue read.
  if (cursor.window_at() < planned_at_) cursor.move_window(planned_at_);
  const WallTime horizon = lookahead_.window_end(planned_at_);
  const bool reads_window =
      has_capacity && !is_backlog && cursor.window_at() < horizon && (has_turn || cursor.is_page_full());
  if (has_turn) cursor.read_state().begin_turn(/*reads_all=*/reads_window);
  if (reads_window)
    ask({lane, cursor.window_at(), cursor.window_id(), horizon, static_cast<int>(shared_.config.window_page)}, cursor,
        ReadKind::window);
  if (has_turn) plan_overdue(type, lane, cursor, is_backlog);
}

// In the order of time, so that the first read is the one that moves the low-water mark.
void Scanner::plan_overdue(const BizType& type, const Lane& lane, LaneCursor& cursor, bool is_backlog) {
  constexpr int kFew = 8;  // exhausted ones may be among them
  const bool is_late_backlog = shared_.due.has_backlog(lane, Pace::catch_up);
  // Claims of a backlog begin at its oldest row. After a sweep or an audit began, a few rows tell whether there is an
  // older one, which was committed late.
  const bool looks_for_older = cursor.is_low_unread();
  const int page = is_backlog ? kFew : static_cast<int>(shared_.config.overdue_page);
  WallTime from = cursor.low();
  if (type.drop_older_than) {
    const WallTime edge = planned_at_ - *type.drop_older_than;
    if (edge > from) ask({lane, from, 0, edge, 1}, cursor, ReadKind::too_late);
    from = std::max(from, edge - Duration(1));
  }
  if (type.catch_up_rate_per_s) {
    const WallTime edge = planned_at_ - shared_.config.lookahead;
    if (edge > from && (!is_late_backlog || looks_for_older))
      ask({lane, from, 0, edge, kFew}, cursor, ReadKind::catch_up);
    from = std::max(from, edge - Duration(1));
  }
  if (!is_backlog || looks_for_older) ask({lane, from, 0, planned_at_, page}, cursor, ReadKind::overdue);
  // The claim of a backlog skips them, and so does an overdue read whose page ends before them.
  if (is_backlog || is_late_backlog || cursor.is_overdue_page_full()) plan_exhausted(lane, cursor);
}

// Nothing of the lane may start, but jobs that ran when the pause began may have run out of attempts since.
void Scanner::plan_paused(const Lane& lane, LaneCursor& cursor) {
  cursor.read_state().begin_turn(/*reads_all=*/cursor.exhausted().is_wanted() &&
                                 cursor.exhausted().from() == WallTime::min());
  plan_exhausted(lane, cursor);
}

// A lane without end must not hold up the scan of all others.
void Scanner::plan_exhausted(const Lane& lane, LaneCursor& cursor) {
  const int page = static_cast<int>(shared_.config.window_page);
  const ExhaustedSearch& search = cursor.exhausted();
  if (search.is_wanted()) ask({lane, search.from(), search.from_id(), planned_at_, page}, cursor, ReadKind::exhausted);
}

void Scanner::ask(const ScanRange& range, LaneCursor& cursor, ReadKind kind) {
  ranges_.push_back(range);
  reads_.push_back({&cursor, kind});
}

// Runs of consecutive selected types, so that an index walk over a run meets no row of another type.
std::vector<Scanner::TypeRun> Scanner::type_runs(const std::function<bool(const BizType&)>& is_selected) const {
  std::vector<TypeId> ids;
  const auto catalog = shared_.catalog.get();
  for (const auto& type : catalog->types)
    if (is_selected(*type)) ids.push_back(type->type_id);
  std::ranges::sort(ids);
  std::vector<TypeRun> runs;
  for (const TypeId id : ids) {
    if (!runs.empty() && runs.back().last + 1 == id)
      runs.back().last = id;
    else
      runs.push_back({id, id});
  }
  return runs;
}

void Scanner::plan_search(MonoTime now, const std::vector<Shard>& shards) {
  constexpr int kMostLanes = 8192;
  search_.before = lookahead_.window_end(planned_at_);
  search_.limit = kMostLanes;
  search_.most_bytes = search_method_.most_bytes(shared_.all_shards.get()->size());
  const auto runs = type_runs([](const BizType&) { return true; });
  if (search_pace_.is_searching())
    for (const Shard shard : shards)
      if (is_turn_of(shard, shards)) search_shard(shard, runs);
  const auto asked =
      type_runs([&](const BizType& type) { return !type.is_paused(planned_at_) && is_asked_for(type, now); });
  if (asked.empty()) return;
  for (const Shard shard : *shared_.all_shards.get())
    if (!std::ranges::binary_search(shards, shard) && is_turn_of(shard, shards)) search_shard(shard, asked);
  if (!search_pace_.is_searching()) searched_shards_ = 0;  // a walk of some types tells nothing of the others
}

// All types but those whose lanes have a cursor: these are read anyway, from their low-water mark on.
void Scanner::search_shard(Shard shard, const std::vector<TypeRun>& runs) {
  ++searched_shards_;
  auto lane = lanes_.lower_bound({shard, std::numeric_limits<TypeId>::min()});
  for (const TypeRun& run : runs) {
    TypeId first = run.first;
    for (; lane != lanes_.end() && lane->first.shard == shard && lane->first.type_id <= run.last; ++lane) {
      const TypeId known = lane->first.type_id;
      if (known < first) continue;
      if (known > first) search_.walks.push_back({shard, first, known - 1});
      first = known + 1;
    }
    if (first <= run.last) search_.walks.push_back({shard, first, run.last});
  }
}

}  // namespace tocsin
