// Housekeeping of one database: membership, history tables, rollups, retention.
// Thread: owner only.
#pragma once

#include <map>
#include <string>

#include "postgres/session.h"

namespace tocsin {

class PgMaintenance {
 public:
  explicit PgMaintenance(Session& session) : session_(session) {}

  // Writes this process's row. The id is drawn at process start, so a restart under an old name is a new node.
  Status heartbeat(std::int64_t node_id, const std::string& name, const std::string& version, bool is_draining);
  Status leave(std::int64_t node_id);
  // Rows of processes that have been silent for a day.
  Status forget_dead_nodes();

  // Folds the deltas of job_count; returns how many rows it folded. Several nodes may do it at once.
  Result<int> fold_counts();

  // History tables for today and the week ahead.
  Status prepare_history();
  // Drops whole days of history older than `days` of each final status ("done", "cancelled", "dead"); returns the
  // tables dropped.
  Result<std::vector<std::string>> drop_history(const std::map<std::string, int>& days);

 private:
  Session& session_;
};

}  // namespace tocsin
