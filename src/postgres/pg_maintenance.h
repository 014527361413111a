// PgMaintenance: the statements of housekeeping in one database: history tables, counts for reports, retention, old
// rows. Each may be repeated, and run on several nodes at once. Used by node/housekeeping. Thread: owner only.
#pragma once

#include <array>
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
  std::array<std::int64_t, 5> jobs{};  // by JobStatus
  double oldest_due_s = 0;             // how long its oldest due job has waited; 0 for a type that is paused
};

class PgMaintenance {
 public:
  explicit PgMaintenance(Session& session) : session_(session) {}

  // Deletes rows of nodes without a heartbeat for an hour, except owners of shards: these may return after an outage of
  // the database. Also deletes permits that ended an hour ago.
  Status forget_dead_nodes();

  // Deletes rows of types that were removed before the oldest day of kept history: no job can have them any more.
  Status forget_removed_types();

  // Adds up to 50,000 deltas (rows of job_count_delta) to the counts of jobs and the reports, and deletes them. Returns
  // how many; 0 while another node does it.
  Result<int> fold_counts();
  // Whether history has a table for today, by the database's clock.
  Result<bool> has_history_today();

  // Adds histograms to the reports. `seq` grows with every flush of a node, so that repeating a flush whose answer was
  // lost adds nothing. False: a flush with this number was written before.
  Result<bool> flush_histograms(NodeId node, std::int64_t seq, std::span<const ReportHistogram> all);

  // One per type that is not removed.
  Result<std::vector<TypeState>> type_states();

  // Updates the horizon (jobs due per slot of time) of the type that was updated longest ago. If that takes more than
  // two seconds, the next update of the type reads a smaller sample. False: no type is due, or another node does it.
  Result<bool> count_horizon();

  // Adds up some days of time zones other than UTC, so that reports need not. False: nothing to do, another node does
  // it, or it took more than two seconds.
  Result<bool> keep_zone_days();

  // Deletes report rows and audit records older than 400 days.
  Status forget_old_reports();

  // Creates the history tables for today and the seven days after it.
  Status prepare_history();

  // Sets the id sequence beyond all stored ids if it was set back, by a restore or a failover (ADR 0032).
  Status raise_ids();

  struct OldDay {
    std::string status;             // done, cancelled or dead
    std::string table;              // without schema
    bool is_attached = false;       // still a partition of the history table
    bool is_half_detached = false;  // an earlier drop_history() was interrupted
    PastDay past;
  };
  struct OldDays {
    std::vector<OldDay> days;
    std::chrono::sys_days today;
  };
  // `days`: for each final status ("done", "cancelled", "dead") how many days of history are kept. Returns the older
  // ones, by the database's clock. That may be wrong: drop only what DayWitness confirms.
  Result<OldDays> old_history(const std::map<std::string, int>& days);
  // Drops the table; waits for its readers. False: another node has dropped it, or does so now.
  Result<bool> drop_history(const OldDay& day);

 private:
  Session& session_;
};

}  // namespace tocsin
