// PgMaintenance: the statements of housekeeping in one database: history tables, counts for reports, retention, old
// rows. Each may be repeated, and run on several nodes at once. Housekeeping calls it, on its thread and in start()
// before that thread exists. Errors: see Session (postgres/session.h). Thread: that of the session.
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
  double oldest_due_s = 0;             // seconds since its oldest due job became due; 0: none, or the type is paused
};

class PgMaintenance {
 public:
  static constexpr std::chrono::milliseconds kBriefLimit{2000};
  // `brief`: the longest that one statement of count_horizon() and keep_zone_days() may take.
  explicit PgMaintenance(Session& session, std::chrono::milliseconds brief = kBriefLimit)
      : session_(session), brief_(brief) {}

  // Deletes rows of nodes without a heartbeat for an hour, except owners of shards: these may return after an outage of
  // the database. Also deletes permits that ended an hour ago.
  Status forget_dead_nodes();

  // Deletes rows of removed types that no live job, no outbox entry, no kept day of history and no report can name.
  Status forget_removed_types();

  // Takes at most 50,000 deltas (rows of job_count_delta), adds them to the counts of jobs and the reports, and deletes
  // them. Returns how many; 0: there are none, or another node does it.
  Result<int> fold_counts();
  // Whether history has a table of each kind for today, by the database's clock.
  Result<bool> has_history_today();

  // Adds histograms to the reports. `seq`: number of the flush: 1 for the first of a node process, larger for each new
  // one. `node`: new at each start of a process, or its flushes are taken for repeats. A flush whose answer was lost is
  // repeated with its number. False: that number, or a larger one, was written before.
  Result<bool> flush_histograms(NodeId node, std::int64_t seq, std::span<const ReportHistogram> all);

  // One per type that is not removed, by id.
  Result<std::vector<TypeState>> type_states();

  // Updates the horizon report (how many jobs are due per minute, hour and day to come) of the type that was updated
  // longest ago. After a time-out of `brief` the old figures of the type stay, and its next update, at least a minute
  // later, reads a quarter of the rows. False: all types were updated within a minute, or another node does
  // it.
  Result<bool> count_horizon();

  // Stores the report totals of up to 8 past days that begin at midnight of some time zone, so that a report for that
  // zone need not add them up when it is read. False:
  // nothing to do, another node does it, or it took longer than `brief`.
  Result<bool> keep_zone_days();

  // Deletes report rows, audit records and ended bulk operations that are older than 400 days by the database's clock,
  // and only if counts of 400 later days are stored: a clock that is years ahead must not delete good data.
  Status forget_old_reports();

  // Creates the history tables for today and the two days after it.
  Status prepare_history();

  // Sets the id sequence beyond all stored ids if a restore or a failover has set it back.
  Status raise_ids();

  struct OldDay {
    std::string status;             // done, cancelled or dead
    std::string table;              // without schema
    bool is_attached = false;       // still a partition of the history table
    bool is_half_detached = false;  // an earlier drop_history() was interrupted; the next one completes it
    PastDay past;                   // what DayWitness needs
  };
  struct OldDays {
    std::vector<OldDay> days;
    std::chrono::sys_days today;
  };
  // `days`: for each final status ("done", "cancelled", "dead") how many days of history are kept. Returns the older
  // ones, by the database's clock. That clock may be wrong: drop only what DayWitness confirms.
  Result<OldDays> old_history(const std::map<std::string, int>& days);
  // Drops the table. Waits for statements that read it; if that takes longer than the session allows, Error conflict
  // with kLocked or unavailable with kTooSlow. False: nothing was dropped here: another node has dropped it or does so
  // now, or an interrupted detach of another day of this status must be completed first.
  Result<bool> drop_history(const OldDay& day);
  Status ping();  // one round trip

 private:
  // Runs `statement`, which answers true or false. Error field kTooSlow: it took longer than `brief`.
  Result<bool> run_briefly(const char* statement);

  Session& session_;
  const std::chrono::milliseconds brief_;
};

}  // namespace tocsin
