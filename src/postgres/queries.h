// Returns statements of sql/ with their parameters filled in: {{table}}, the table of live jobs (not yet in history)
// that they work on, by over(); {{lock}}, how they treat locked rows, by the others. The stores of src/postgres send
// them, mostly with Session::prepared(). A name without a file ends the process. Thread: any.
//
// `table` is tocsin.job_live for a batch over several of its partitions (the executor prunes to one per row), or one
// partition when the whole batch lies in it. tests/integration/plan_test.cc checks the plans.
#pragma once

#include <string>

#include "tocsin/shard.h"

namespace tocsin::sql {

inline const std::string kLive = "tocsin.job_live";
// Shard s lies in live table s modulo 8. DO NOT CHANGE: section 3 of the baseline migration creates them so.
inline constexpr int kLiveTables = 8;
inline int live_table_of(Shard shard) { return shard % kLiveTables; }
std::string live_table(int table);  // tocsin.job_live_0007

// The statement of sql/<name>.sql over one live table, or over kLive.
std::string over(const char* name, const std::string& table);
// The statement of sql/<name>.sql. `is_waiting`: it waits for locked rows, and fails with a conflict after the
// session's lock_timeout; otherwise it skips them.
std::string locking(const char* name, bool is_waiting);

// How a statement that cancels or changes many pending jobs treats rows that another transaction has locked.
enum class LockPolicy {
  together,  // changes all that are pending, or none: fails with a conflict (55P03) when a row stays locked for 50 ms.
             // The cheapest; the others follow after such a conflict
  skipping,  // leaves locked rows unchanged
  waiting,   // waits for locked rows; fails with a conflict after the session's lock_timeout
};
std::string cancel(LockPolicy policy);  // parameters: arrays of shards and ids
// Parameters: arrays of shards, ids, new deadlines, and microseconds from now; where both of a row are null: due now.
std::string change_pending(LockPolicy policy);

}  // namespace tocsin::sql
