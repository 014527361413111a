// The statements of housekeeping in one database: history tables, rollups, retention, old rows. Each may be repeated,
// and run on several nodes at once. Used by node/housekeeping.
// Thread: owner only.
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
  std::array<std::int64_t, 5> jobs{};  // by status
  double oldest_due_s = 0;             // how long its oldest due job has waited; 0 for a type that is paused
};

class PgMaintenance {
 public:
  explicit PgMaintenance(Session& session) : session_(session) {}

  // Deletes rows of nodes without a heartbeat for an hour, except owners of shards: these may come
  // back after an outage of the database.
  Status forget_dead_nodes();

  // Deletes rows of types that were removed before the oldest day of kept history: no job can have them any more.
  Status forget_removed_types();

  // Folds the deltas of job_count into the counts and the reports; returns how many rows it folded: 0 while
  // another node folds.
  Result<int> fold_counts();
  // Whether finishes have a table to go to, by the database's clock.
  Result<bool> has_history_today();

  // Adds histograms to the reports. `seq` grows with every flush of a node: one that is repeated because its answer was
  // lost adds nothing. False: it was known.
  Result<bool> flush_histograms(NodeId node, std::int64_t seq, std::span<const ReportHistogram> all);

  // One per type that is not removed.
  Result<std::vector<TypeState>> type_states();

  // Updates the horizon (jobs due per slot) of the next type whose turn it is, within two seconds. False: no type's
  // turn, or another node does it.
  Result<bool> count_horizon();

  // Adds up some days of time zones, so that reports need not. False: nothing to do, another node does it, or it took
  // more than two seconds.
  Result<bool> keep_zone_days();

  // Deletes report rows and audit records older than 400 days.
  Status forget_old_reports();

  // Creates the history tables for today and the week ahead.
  Status prepare_history();

  // Sets the id sequence beyond all stored ids (ADR 0032).
  Status raise_ids();

  struct OldDay {
    std::string status;
    std::string table;
    bool is_attached = false;
    bool is_half_detached = false;  // an earlier attempt was interrupted
    PastDay past;
  };
  struct OldDays {
    std::vector<OldDay> days;
    std::chrono::sys_days today;
  };
  // Whole days of history older than `days` of each final status ("done", "cancelled", "dead"), by the database's
  // clock, which may be wrong: see DayWitness.
  Result<OldDays> old_history(const std::map<std::string, int>& days);
  // Drops the table; waits for its readers. False: another node has dropped it, or does so now.
  Result<bool> drop_history(const OldDay& day);

 private:
  Session& session_;
};

}  // namespace tocsin
