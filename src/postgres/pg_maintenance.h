// PgMaintenance: the statements of housekeeping in one database: history tables, counts for reports, retention,
// deletion of old rows. Each call may be repeated, and several nodes may run it at the same time. Made by Housekeeping
// (maintenance/housekeeping.h), which calls it in start() and later on a thread of its own. Errors: see Session
// (postgres/session.h). Thread: the session's (housekeeping's).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/day_witness.h"
#include "core/report_histogram.h"
#include "ports/member_store.h"
#include "postgres/session.h"

namespace tocsin {

struct TypeState {
  std::string name;
  std::array<std::int64_t, 5> jobs{};  // numbers of jobs, by JobStatus
  // Seconds since its oldest due job became due; 0: no job is due, or the type is paused.
  double oldest_due_s = 0;
};

class PgMaintenance {
 public:
  static constexpr std::chrono::milliseconds kBriefLimit{2000};
  // `brief`: the time limit of one statement of count_horizon() and keep_zone_days().
  explicit PgMaintenance(Session& session, std::chrono::milliseconds brief = kBriefLimit)
      : session_(session), brief_(brief) {}

  // Deletes the rows of nodes without a heartbeat for an hour, except owners of shards, which may return after an
  // outage of the database. Also deletes permits that ended an hour ago.
  Status forget_dead_nodes();

  // Deletes the rows of removed types that nothing can refer to any more: no live job, outbox entry, day of history or
  // report.
  Status forget_removed_types();

  // Adds at most 50,000 deltas (rows of job_count_delta, one per change of jobs) to the counts of jobs and the reports,
  // and deletes them. Returns how many; 0: there are none, or another node does it.
  Result<int> fold_counts();
  // Whether history has a table of each kind for today, by the database's clock.
  Result<bool> has_history_today();

  // Adds histograms to the reports. `node`: a number that is new at each start of a process. `seq`: number of the flush
  // in this process: 1, then larger for each. A flush whose answer was lost is repeated with the same number. False: a
  // flush with this number, or a larger one, was written before.
  Result<bool> flush_histograms(NodeId node, std::int64_t seq, std::span<const ReportHistogram> all);

  // One per type that is not removed, by type_id.
  Result<std::vector<TypeState>> type_states();

  // Updates the horizon report (how many jobs are due per minute, hour and day to come) of one type: the one that was
  // updated longest ago. If it takes longer than `brief`, the type keeps its old figures, and its next update, at least
  // a minute later, reads a quarter of the rows. False: all types were updated within a minute, or another node does
  // it.
  Result<bool> count_horizon();

  // Stores report totals of up to 8 past days of time zones (days that begin at midnight of some zone), so that reports
  // for a zone need not add them up. False: nothing to do, another node does it, or it took longer than `brief`.
  Result<bool> keep_zone_days();

  // Deletes report rows, audit records and ended bulk operations older than 400 days by the database's clock. It does
  // so only if counts of 400 later days are stored: a clock that is years ahead must not delete good data.
  Status forget_old_reports();

  // Creates the history tables for today and the two days after it, each kind in a transaction of its own. False: not
  // those of cancelled jobs, because another transaction holds their lock: one that called tocsin.cancel_job on a day
  // without a table keeps it to its end.
  Result<bool> prepare_history();

  // Sets the id sequence above all stored ids, if a restore or a failover has set it back.
  Status raise_ids();

  struct OldDay {
    std::string status;        // done, cancelled or dead
    std::string table;         // without schema
    bool is_attached = false;  // still a partition of the history table
    // An earlier drop_history() was interrupted while it detached the table; the next one completes it.
    bool is_half_detached = false;
    PastDay past;  // for DayWitness (core/day_witness.h)
  };
  struct OldDays {
    std::vector<OldDay> days;
    std::chrono::sys_days today;
  };
  // `days`: how many days of history are kept, for each final status ("done", "cancelled", "dead"). Returns the older
  // days, by the database's clock. That clock may be wrong: drop only days that DayWitness confirms.
  Result<OldDays> old_history(const std::map<std::string, int>& days);
  // Drops the table of a day. It waits for statements that read the table.
  //  - Error conflict with field kLocked, or unavailable with field kTooSlow: the wait exceeds the session's limits.
  //  - False: nothing was dropped here. Another node has dropped it or is doing so, or an interrupted detach of another
  //    day of this status must be completed first.
  Result<bool> drop_history(const OldDay& day);
  Status ping();  // one round trip

 private:
  // Executes `statement`, which answers true or false, within `brief`. Error with field kTooSlow: it took longer.
  Result<bool> run_briefly(const char* statement);

  Session& session_;
  const std::chrono::milliseconds brief_;
};

}  // namespace tocsin
