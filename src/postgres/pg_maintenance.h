// Housekeeping of one database: history tables, rollups, retention.
// Thread: owner only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "postgres/session.h"

namespace tocsin {

class PgMaintenance {
 public:
  explicit PgMaintenance(Session& session) : session_(session) {}

  // Rows of processes that have been silent for an hour. Not those that own shards: after an outage of the database
  // that long they may come back.
  Status forget_dead_nodes();

  // Rows of types that were removed before the oldest day of history that is kept: no job can have them any more.
  Status forget_removed_types();

  // Folds the deltas of job_count; returns how many rows it folded. Several nodes may do it at once.
  Result<int> fold_counts();

  // History tables for today and the week ahead.
  Status prepare_history();

  struct OldDay {
    std::string status;
    std::string table;
    bool is_attached = false;
    bool is_half_detached = false;  // an earlier attempt was interrupted
  };
  // Whole days of history older than `days` of each final status ("done", "cancelled", "dead").
  Result<std::vector<OldDay>> old_history(const std::map<std::string, int>& days);
  // Waits for those who read the table. False: another node has dropped it, or is about to.
  Result<bool> drop_history(const OldDay& day);

 private:
  Session& session_;
};

}  // namespace tocsin
