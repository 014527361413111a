// Reads due-soon rows of the owned shards into memory; changes nothing.
//
// Two reads per lane and scan, both by (fire_at, job_id) range:
//   window   (cursor, now + reach): what newly came so near. Rows enter memory once; the cursor moves on.
//   overdue  [low, now): what should have fired. Normally empty or known. It finds rows that the cursor had passed when
//   they were
//            committed, hints that were lost or refused, retries, ended leases: each at most one scan interval late.
// `low`, the low-water mark, skips the dead index entries of finished jobs, which pile up while somebody holds an old
// snapshot. It stays a margin behind now, for transactions that commit late. Those that commit later still are found by
// a sweep, which starts every lane again now and then: from its floor, before which nothing can appear any more,
// because jobs are never due before they are written and no transaction that old still writes (the idea of a snapshot's
// xmin). A lane whose overdue page is full of strangers becomes a backlog: it is claimed straight from the table,
// without memory. A quiet lane, where the last scan found nothing, is read in one piece: an idle node pays half.
// A node that is alone, hears notifications, has nothing in hand and finds nothing scans every second interval: nobody
// else takes in jobs whose notification might be lost.
// Where much is read, a slice of the lanes is read at a time, so that no scan takes long: each lane once per interval
// as ever. Not where there is more than memory, or one read, has room for: all lanes get their part of it then.
// While memory is nearly full, less of the time ahead is read, and hints of what is due later are not needed: what is
// due next has room. Rows that found no room nevertheless become backlog as soon as they are due and memory has run out
// of their type, those of all lanes at once: none waits for the next scan, and none gets ahead.
//
// Of types that drop or slow down what is late, the overdue read begins where that ends, so that it does not hide what
// is to run at once; of what lies before, a look at the oldest tells whether there is any, and its lane goes to the
// lease reaper or to the backlog, at the catch-up pace.
//
// Thread: owner only, except the inputs it shares (EngineShared) and request_sweep() and
// request_scan() (any).
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/stage.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Scanner final : public Stage {
 public:
  Scanner(EngineShared& shared, JobStore& store) : shared_(shared), store_(store), reach_(shared.config.lookahead) {}

  const char* name() const override { return "scanner"; }
  MonoTime step(MonoTime now) override;

  // The next scan starts every lane from the beginning: after a reconnect, or when notifications may have been lost.
  void request_sweep() { is_sweep_requested_ = true; }
  // The next scan comes at once: shards were gained, whose lanes start from the beginning anyway.
  void request_scan() { is_scan_requested_ = true; }

 private:
  enum class Part { window, overdue, both, catch_up, too_late };
  struct LaneState {
    WallTime cursor{};  // window: (cursor, cursor_id) was read last
    JobId cursor_id = 0;
    WallTime low = WallTime::min();          // overdue: no live row before it, but for late commits
    WallTime floor = WallTime::min();        // overdue: no live row before it, ever
    WallTime audited_up_to = WallTime::min();  // the floor when the audit that is under way began
    bool is_page_full = false;               // window: more rows wait right behind the cursor
    bool is_quiet = false;                   // both were read last time, and empty
    std::size_t slice = 0;                   // in whose turn it is read
    WallTime left_behind = WallTime::max();  // from then on rows found no room in memory
  };
  struct Asked {
    Lane lane;
    Part part;
  };

  void plan(MonoTime now, WallTime db_now, bool is_continuation);
  void plan_overdue(const BizType& type, const Lane& lane, const LaneState& state, WallTime db_now);
  void ask(const ScanRange& range, Part part);
  void take(const Asked& asked, const ScanRange& range, const std::vector<ScanReply::Row>& rows, WallTime db_now);
  void take_late(Part part, const ScanRange& range, const std::vector<ScanReply::Row>& rows);
  void move_low(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows, WallTime db_now);
  // Consumers come to one node for the jobs of every shard; the claim decides between nodes that read the same.
  bool reads_every_shard_of(const BizType& type, MonoTime now) const;
  void plan_sweep();
  void plan_audit();
  void count_audited(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows);
  void begin_whole_cycle();
  Duration end_turn();
  void adapt_reach();
  WallTime end_of_sight() const;
  void leave_behind(LaneState& lane, WallTime from);
  MonoTime call_up_left_behind(MonoTime now);
  void call_up(WallTime due_by, const std::function<bool(TypeId)>& is_meant);
  void mark(const ScanReply& reply);
  void take_window(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows);
  void take_overdue(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows);
  void take_both(LaneState& lane, const ScanRange& range, const std::vector<ScanReply::Row>& rows, WallTime db_now);
  bool enter(const Candidate& candidate);

  EngineShared& shared_;
  JobStore& store_;
  // When which transaction was the next to write; one mark per scan, the oldest first.
  struct WriterMark {
    WallTime began;
    std::int64_t next_writer;
  };
  static constexpr std::size_t kMostMarks = 4096;  // an hour of scans, a quarter of it while they come in slices

  Duration reach_;  // how far ahead is read: the lookahead at most
  std::map<Lane, LaneState> lanes_;
  std::deque<WriterMark> marks_;
  WallTime settled_ = WallTime::min();  // whatever commits from now on is due then or later
  WallTime planned_at_{};               // where the reads of this step part: overdue before it, window from it on
  std::vector<ScanRange> ranges_;
  std::vector<Asked> asked_;
  std::vector<Candidate> found_;
  std::vector<JobId> expired_;
  std::set<TypeId> new_backlogs_;  // of these types a lane became backlog in this scan
  MonoTime next_scan_{};
  static constexpr std::size_t kSlices = 4;  // of 64 shards at 2,000 jobs/s each takes a few ms
  std::size_t last_slice_ = 0;               // that a lane was given
  std::size_t slices_ = 1;                   // in which the lanes are read in this cycle
  std::size_t slice_ = 0;                    // whose turn it is
  std::size_t rows_ = 0;                     // read in this cycle
  std::size_t intervals_ = 0;                // that have passed
  std::size_t swept_ = 0;                    // up to this one
  std::size_t audited_ = 0;                  // likewise
  std::uint64_t connection_ = 0;             // of the last reply
  bool has_more_ = false;
  bool is_overfull_ = false;                      // in this cycle there was more than memory, or one read, has room for
  WallTime first_left_behind_ = WallTime::max();  // of all lanes, or before it
  std::atomic<bool> is_sweep_requested_{false};
  std::atomic<bool> is_scan_requested_{false};
};

}  // namespace tocsin
