// The statements of the firing path and of the request path that are not in sql/ yet, by name. Each says which index it
// needs and which hazard it avoids.
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
std::string live_table(int table);

// An expression: whether jobs of this type are live. One look into the due index per shard.
std::string has_live_jobs(const std::string& type_id);  // tocsin.job_live_0007

// Reads; index _due (shard + 0, type_id, fire_at, job_id + 0) by row comparison, so that thousands of rows of one
// instant can be paged. Two rows more: (-1, next transaction to write, when it was the next) and (0, oldest that still
// writes, the clock); the clock is read last, to be as fresh as possible when the reply arrives.
std::string scan();
std::string overdue();  // how many rows, counted up to $1

// pending or expired -> running. Index _id. SKIP LOCKED in a materialized CTE: a locking sub-select that is planned
// twice claims more than it locked; the join back by key does not. Commits without waiting for the disk: a claim that a
// crash of the database takes back leaves a pending job, and its token, which is random, keeps the older run from
// finishing it. Unless the last parameter, for synchronous_commit, is on.
std::string claim(const std::string& table);
std::string claim_due(
    const std::string& table);  // index _due; statement_timestamp() serves as index condition, clock_timestamp() cannot
std::string claimed_with(const std::string& table);
std::string claimed_with_lane(const std::string& table);

// pending or expired -> done in one statement: the row goes from the live table to history. Index _id, and _due for
// fire_due. REQUIRES: a transaction of its own.
//   fire           all or none: gives up (55P03) when it waits for a lock for 20 ms. One pass over the rows: the fast
//                  way
//   fire_skipping  leaves locked rows alone, as fire_due does
std::string fire(const std::string& table);
std::string fire_skipping(const std::string& table);
std::string fire_due(const std::string& table);

// running -> done, dead or pending, guarded by the claim token. Answers the ordinals that were applied.
std::string finish(const std::string& table);
// Locks the running rows whose token is valid and calls the function $4.$5 for them, inside the session's sandbox
// (pg_function_store.h): tocsin.job is built from the live row, since the view would read every home of a job. Index
// _id. Answers (ordinal, answer). SKIP LOCKED as in finish.
std::string call_function(const std::string& table);
// Of requests that were not applied: those whose claim is valid, so another transaction must hold the row locked.
std::string still_claimed();

// The same for consumers, through the parent: only while the lease is valid. `wait`: waits for locked rows, at most
// lock_timeout.
std::string finish_leased(bool wait);
// leased: the leases that are valid; extend: makes them longer. Index _id. Answer the ordinals.
std::string leased();
std::string extend(bool wait);
std::string leases_left();

// running, lease ended, attempts spent -> dead.
std::string bury();

// Too late to run -> dead: pending, or running with the lease ended. Index _due.
std::string drop_late(const std::string& table);

// Inserts through the parent: routing to a live table costs an insert little, unlike a scan.
std::string create();        // answers (clock, number of jobs)
std::string create_keyed();  // ON CONFLICT DO NOTHING on the index _key; answers (job_id, clock) of those created
std::string find_by_key();   // live and history; run after create_keyed, with a snapshot of its own
// Pending jobs that their keys' new creates change, for each the rule of its own: where the time wins. Each job once,
// in one order for all, or two calls could wait for each other's rows.
std::string update_existing();
std::string still_pending();
// Counts the rows of the table expression `from` from dead to pending.
std::string count_revived(const std::string& from);
std::string undo_create();

// pending -> cancelled. REQUIRES: a transaction of its own, as every claim: `together` shortens the lock time-out for
// the rest of the transaction, a claim that is not durable does not wait for the disk. Index _id. The ids come sorted,
// so that two that wait for each other's rows cannot deadlock.
enum class CancelPass {
  together,  // all or none: gives up (55P03) when a row stays locked for 50 ms. One pass over the rows: the fast way
  skipping,  // leaves locked rows alone
  waiting,   // waits for locked rows, at most lock_timeout
};
std::string cancel(CancelPass pass);

// The same for business keys (index _biz). A key with more live jobs than $4 is left alone. One snapshot, all or none:
// (ordinal of the key, job_id, 3) of what it cancels, then as state_of_keys. A job that another transaction changed
// meanwhile is told as pending.
std::string cancel_keys_together();
// Leaves locked rows alone. Answers (ordinal of the key, job_id) of what it cancels.
std::string cancel_keys();
// Of keys, after cancel_keys: (ordinal, job_id, status) of what is live, and 2 for the newest $5 of what has ended.
// Index _biz.
std::string state_of_keys();
// Pending jobs: a new deadline for each, or due now where neither time is given. Index _id. `together` as above.
// REQUIRES: each job once.
std::string change_pending(CancelPass pass);

// dead -> pending. `picked`: a SELECT of the dead rows (job_id, finished_at, delay_us), which it locks. Returns
// `columns` of the live rows `j`.
std::string revive(const std::string& picked, const std::string& columns);

// Live and history rows by id.
std::string find();
// Ids of outbox entries that stand for other jobs: (id, job_id). Primary key.
std::string stands_for();
// Live rows alone: a job that is found there needs no other table.
std::string find_live();
// The newest jobs of business keys, each key with a limit of its own. Index _biz, which gives the order.
std::string list_keys();

}  // namespace tocsin::sql
