// Which live table a statement of sql/ works on, and how it treats locked rows.
//
// `table` is tocsin.job_live for a batch over several live tables (the executor prunes to one of them per row), or one
// live table when the whole batch lies in it. Sessions pin index scans and nested loops (session.h), and
// tests/integration pins the plans.
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
// The statement of sql/<name>.sql. `is_waiting`: it waits for locked rows, at most lock_timeout; otherwise it skips
// them.
std::string locking(const char* name, bool is_waiting);

// How a statement that changes many pending jobs treats rows that another transaction has locked.
enum class CancelPass {
  together,  // all or none: gives up (55P03) when a row stays locked for 50 ms. One pass over the rows: the fast way
  skipping,  // leaves locked rows alone
  waiting,   // waits for locked rows, at most lock_timeout
};
std::string cancel(CancelPass pass);
std::string change_pending(CancelPass pass);

}  // namespace tocsin::sql
