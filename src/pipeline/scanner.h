// Scanner: the stage that reads due-soon rows of the owned shards into memory. It changes nothing in the database.
//
// A lane is the jobs of one type in one shard; a lane with rows due soon has a cursor, which holds what of it was read.
// A scan is one statement, made by one step. A shard has its turn once per cycle, which lasts one scan interval (two
// while the node is idle) and has one scan, or four of a quarter of the shards each. For each lane with a cursor in a
// shard that has its turn, a scan reads, by (fire_at, job_id) range:
//  - window (position of the cursor, end of the lookahead): rows that came within the lookahead since the last scan.
//    Between two sweeps each row is read once.
//  - overdue [low-water mark, now): rows that should have fired; normally none, or known ones. Finds rows committed
//    behind the window, lost or refused hints, retries and ended leases, each at most one scan interval late.
//  - exhausted, where a backlog, a full overdue page or a pause hides them: each sweep looks through the overdue rows
//    for those whose last attempt runs, which become dead when its lease has ended. One page of a lane per scan. Of
//    paused types nothing else is read.
// After a full page, and for new lanes, a continuation follows at once: a statement that reads only these.
//
// The search finds, among all lanes without a cursor, those with a row due within the lookahead; they get a cursor and
// are read at once. A lane without rows loses its cursor. So lanes without rows cost nothing, and lanes whose rows are
// due later cost a part of an index page or one index probe.
//
// The policies: LaneCursor (what of a lane was read), ScanSchedule (when, and how much at a time), ShardRotation (which
// shards are swept or audited), AdaptiveLookahead (how far ahead), ScanOverflow (lanes whose rows did not fit),
// XminWatermark (which rows can still be committed), ShardTenure (what the previous owner may still write),
// SearchMethod (how lanes are searched for), SearchPace (how often).
//
// A lane becomes backlog if its overdue page is full, mostly of rows that memory does not have, or if memory has no
// capacity for an overdue row: claimers claim its rows from the table, oldest first, and only exhausted and late rows
// of it are read. When its backlog has ended it is read at once. For types that drop late jobs or have a catch-up rate,
// the overdue read begins behind the late rows; a read of the oldest few tells whether there are any, and the lane goes
// to the lease reaper (drop) or becomes backlog at the catch-up pace.
//
// Errors: after a failed scan everything is read again from the beginning, after retry_pause.
// Thread: owner only, except the inputs it shares (EngineShared) and request_sweep() and request_scan() (any), after
// which the caller wakes the stage.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/stage.h"
#include "pipeline/adaptive_lookahead.h"
#include "pipeline/engine_shared.h"
#include "pipeline/lane_cursor.h"
#include "pipeline/scan_overflow.h"
#include "pipeline/scan_schedule.h"
#include "pipeline/search_method.h"
#include "pipeline/search_pace.h"
#include "pipeline/shard_rotation.h"
#include "pipeline/shard_tenure.h"
#include "pipeline/xmin_watermark.h"

namespace tocsin {

// Its data members are the policies above and what the current statement asks and has found.
class Scanner final : public Stage {
 public:
  Scanner(EngineShared& shared, JobStore& store);

  const char* name() const override { return "scanner"; }
  MonoTime step(MonoTime now) override;

  // The next scan does not wait for its time and starts every lane from the beginning: what was read does not count
  // (another server answers, the clock was set back), or notifications may have been lost.
  void request_sweep() { is_sweep_requested_ = true; }
  // The next step scans all shards, from where their lanes stand: shards were gained, or what may be scanned or hinted
  // has changed.
  void request_scan() { is_scan_requested_ = true; }

  std::size_t lanes() const { return lanes_.size(); }  // that have a cursor

 private:
  enum class ReadKind { window, overdue, exhausted, catch_up, too_late };
  struct PlannedRead {
    LaneCursor* cursor;
    ReadKind kind;
  };
  struct TypeRun {  // consecutive types that may be searched together
    TypeId first, last;
  };

  void read_ended_backlogs(MonoTime now);
  // plan...() fill ranges_ and search_ with what the next statement reads. `is_continuation`: it follows at once, and
  // no shard has its turn.
  void plan(MonoTime now, WallTime db_now, bool is_continuation);
  void begin_turn(MonoTime now, WallTime db_now);  // obeys a request for a sweep; forgets lanes not to be read
  bool are_hints_complete() const;                 // for SearchPace
  void begin_sweeps_and_audits();
  bool is_turn_of(Shard shard, const std::vector<Shard>& shards) const;
  void plan_lane(const BizType& type, const Lane& lane, LaneCursor& cursor, bool has_turn);
  void plan_overdue(const BizType& type, const Lane& lane, LaneCursor& cursor, bool is_backlog);
  void plan_paused(const Lane& lane, LaneCursor& cursor);
  void plan_exhausted(const Lane& lane, LaneCursor& cursor);
  std::vector<TypeRun> type_runs(const std::function<bool(const BizType&)>& is_selected) const;
  void plan_search(MonoTime now, const std::vector<Shard>& shards);
  void search_shard(Shard shard, const std::vector<TypeRun>& runs);
  void ask(const ScanRange& range, LaneCursor& cursor, ReadKind kind);
  // take...() process what a scan has read.
  void take(const ScanReply& reply);
  void take_rows(const PlannedRead& read, const ScanRange& range, const LaneCursor::Rows& rows, WallTime db_now);
  void take_window(LaneCursor& cursor, const ScanRange& range, const LaneCursor::Rows& rows);
  void take_overdue(LaneCursor& cursor, const ScanRange& range, const LaneCursor::Rows& rows);
  void take_late(ReadKind kind, const ScanRange& range, const LaneCursor::Rows& rows);
  bool enter(const Candidate& candidate);  // into memory; false: no capacity
  bool owns(Shard shard) const;
  // Whether a consumer of this pull type asked here lately. Then this node reads the type's lanes in every shard of the
  // database, not only the owned ones: the claim decides between nodes that read the same row.
  bool is_asked_for(const BizType& type, MonoTime now) const;
  void adapt_lookahead();
  MonoTime promote_overflow(MonoTime now);  // returns when to call it again
  // ScanOverflow::promote() into the DueQueue.
  void promote(WallTime due_by, const std::function<bool(TypeId)>& is_selected);
  MonoTime failed(MonoTime now, const Error& error);  // returns when to scan again
  Duration end_turn();                                // returns the pause until the next scan

  EngineShared& shared_;
  JobStore& store_;

  ScanSchedule schedule_;
  ShardRotation sweeps_, audits_;
  AdaptiveLookahead lookahead_;
  ScanOverflow overflow_;
  SearchMethod search_method_;
  SearchPace search_pace_;
  XminWatermark watermark_;
  ShardTenure tenure_;
  std::map<Lane, LaneCursor> lanes_;

  // The current statement.
  WallTime planned_at_{};  // the database's time: overdue reads end here, window reads begin no earlier
  std::vector<ScanRange> ranges_;
  std::vector<PlannedRead> reads_;
  LaneSearch search_;
  std::size_t searched_shards_ = 0;
  std::vector<Candidate> found_;   // new in memory
  std::vector<JobId> expired_;     // exhausted, for the lease reaper
  std::set<TypeId> new_backlogs_;  // types of which a lane became backlog in this scan

  MonoTime next_scan_{};
  MonoTime cycle_began_{};
  std::uint64_t connection_ = 0;  // ScanReply::connection of the last reply
  bool has_more_ = false;         // a page was full, lanes were found or a backlog ended: a continuation follows
  std::atomic<bool> is_sweep_requested_{false};
  std::atomic<bool> is_scan_requested_{false};
};

}  // namespace tocsin
