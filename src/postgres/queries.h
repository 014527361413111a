// Returns the statements of src/postgres/sql that have parameters in {{ }}, with these filled in. over() fills
// {{table}}, the table of live jobs (not yet in history); the other functions fill {{lock}}, how the statement treats
// locked rows. The stores of src/postgres execute them, mostly with Session::prepared(). A name without a file ends the
// process. Thread: any.
//
// `table` is tocsin.job_live for a batch over several of its partitions: the executor then reads one partition per row.
// It is a single partition if the whole batch lies in it. tests/integration/plan_test.cc checks the plans.
#pragma once

#include <string>

#include "tocsin/shard.h"

namespace tocsin::sql {

inline const std::string kLive = "tocsin.job_live";
// Shard s lies in live table s modulo 8. DO NOT CHANGE: section 3 of the baseline migration creates the tables so.
inline constexpr int kLiveTables = 8;
inline int live_table_of(Shard shard) { return shard % kLiveTables; }
std::string live_table(int table);  // tocsin.job_live_0007

// The statement of sql/<name>.sql over `table`: one live table, or kLive.
std::string over(const char* name, const std::string& table);
// The statement of sql/<name>.sql. `is_waiting`: it waits for locked rows, and fails with a conflict after the
// session's lock_timeout. Otherwise it skips locked rows.
std::string locking(const char* name, bool is_waiting);

// How a statement that cancels or changes many pending jobs treats rows that another transaction has locked.
enum class LockPolicy {
  together,  // changes all pending jobs, or none: fails with a conflict (55P03) if a row stays locked for 50 ms. The
             // cheapest policy; callers use another one after such a conflict
  skipping,  // leaves locked rows unchanged
  waiting,   // waits for locked rows; fails with a conflict after the session's lock_timeout
};
std::string cancel(LockPolicy policy);  // parameters: arrays of shards and ids
// Parameters: arrays of shards, ids, new deadlines, and microseconds from now. Where both times are null, the job
// becomes due now.
std::string change_pending(LockPolicy policy);

}  // namespace tocsin::sql
