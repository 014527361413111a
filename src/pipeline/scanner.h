// Scanner: the stage that reads due-soon rows of the owned shards into memory. It changes nothing in the database.
// Engine (pipeline/engine.h) owns one.
//
// A lane is the jobs of one type in one shard. A lane with rows due soon has a cursor, which says how far its rows were
// read. A scan is one statement, made by one step. A shard has its turn once per cycle. A cycle lasts one scan interval
// (two while the node is idle), and is one scan, or four scans of a quarter of the shards each. In the turn of a shard
// a scan reads, for each of its lanes with a cursor, these ranges of (fire_at, job_id):
//  - window (position of the cursor, end of the lookahead): rows that came within the lookahead since the last scan.
//    Between two sweeps each row is read once.
//  - overdue [low-water mark, now): rows that should have fired. Normally there is none, or memory knows it. This read
//    finds rows committed behind the window, lost or refused hints, retries and ended leases, each at most one scan
//    interval late.
//  - exhausted: overdue rows whose last attempt runs; they become dead when its lease has ended. Read where a backlog,
//    a full overdue page or a pause hides such rows from the overdue read. Each sweep looks through the overdue rows
//    for them, one page of a lane per scan. Of a paused type nothing else is read.
// A full page, or a new lane, is followed at once by a continuation: a statement that reads only such lanes.
//
// The search finds, among all lanes without a cursor, those with a row due within the lookahead. Such a lane gets a
// cursor and is read at once. A lane without rows loses its cursor. So a lane without rows costs nothing, and a lane
// whose rows are due later costs a part of an index page or one index probe.
//
// The policies, each an object that the Scanner owns: LaneCursor (what of a lane was read), ScanSchedule (when, and how
// much at a time), ShardRotation (which shards are swept or audited), AdaptiveLookahead (how far ahead), ScanOverflow
// (lanes whose rows did not fit), XminWatermark (which rows can still be committed), ShardTenure (what the previous
// owner may still write), SearchMethod (how lanes are searched for), SearchPace (how often).
//
// A lane becomes backlog if memory has no capacity for an overdue row, or if its overdue page is full and most of these
// rows are not in memory. Then claimers claim its rows from the table, oldest first, and scans read only its exhausted
// and late rows. The backlog begins at the oldest row of that page. So after each sweep or audit, and whenever a row
// has come back, one read of the oldest few rows tells whether there is an older one, and the backlog grows to cover
// it. When the backlog has ended, the lane is read at once.
//
// Some types drop late jobs, or start them at a catch-up rate. Their overdue read begins behind the late rows; one more
// read of the oldest few rows tells whether there are late ones. If so, the lane goes to the lease reaper (drop) or
// becomes backlog at the catch-up pace.
//
// Errors: after a failed scan everything is read again from the beginning, after retry_pause.
// Thread: owner only (the scanner's loop thread), except request_sweep() and request_scan() (any), after which the
// caller wakes the stage. The objects in EngineShared are safe for any thread.
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

  // Requests a scan that does not wait for its time and starts every lane from the beginning. For when earlier reads do
  // not count (another server answers, the clock was set back), or notifications may have been lost.
  void request_sweep() { is_sweep_requested_ = true; }
  // Requests a scan of all shards in the next step, from where their lanes stand. For when shards were gained, or when
  // it has changed what may be scanned or hinted.
  void request_scan() { is_scan_requested_ = true; }

  std::size_t lanes() const { return lanes_.size(); }  // number of lanes that have a cursor

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
  void take_returned_rows();
  // The plan functions fill ranges_ and search_ with what the next statement reads. `is_continuation`: the statement
  // follows the one before at once, and no shard has its turn.
  void plan(MonoTime now, WallTime db_now, bool is_continuation);
  void begin_turn(MonoTime now, WallTime db_now);  // obeys request_sweep(); forgets lanes that are not to be read
  bool are_hints_complete() const;                 // see SearchPace::begin_cycle()
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
  // The take functions process what a scan has read.
  void take(const ScanReply& reply);
  void take_rows(const PlannedRead& read, const ScanRange& range, const LaneCursor::Rows& rows, WallTime db_now);
  void take_window(LaneCursor& cursor, const ScanRange& range, const LaneCursor::Rows& rows);
  void take_overdue(LaneCursor& cursor, const ScanRange& range, const LaneCursor::Rows& rows);
  void take_late(const LaneCursor& cursor, ReadKind kind, const ScanRange& range, const LaneCursor::Rows& rows);
  bool enter(const Candidate& candidate);  // into memory; false: no capacity
  bool owns(Shard shard) const;
  // Whether a consumer asked this node for jobs of this pull type lately. Then this node reads the type's lanes in
  // every shard of the database, not only in the owned ones. Between nodes that read the same row the claim decides.
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
  std::vector<JobId> expired_;     // jobs of exhausted rows, for the lease reaper
  std::set<TypeId> new_backlogs_;  // types of which a lane became backlog in this scan

  MonoTime next_scan_{};
  MonoTime cycle_began_{};
  std::uint64_t connection_ = 0;         // ScanReply::connection of the last reply
  std::uint64_t reported_releases_ = 0;  // UnreportedReleases::reported() before this step took the reports
  bool has_more_ = false;                // a page was full, lanes were found or a backlog ended: a continuation follows
  std::atomic<bool> is_sweep_requested_{false};
  std::atomic<bool> is_scan_requested_{false};
};

}  // namespace tocsin
