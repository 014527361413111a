// BulkStore: the store of bulk operations ("bulks"), one per database. BulkRunner runs bulks with it; the API starts,
// lists and stops them. Both call it on the thread of BulkService (service/bulk_service.h). Implemented by PgBulkStore
// (src/postgres) and FakeBulkStore (tests).
//
// The control database has one row per bulk: the request, the state, which node runs it, and until when. Every database
// keeps the progress of a bulk in its own shards, written in the transaction that changes the jobs. So a bulk that
// another node takes over continues after the last batch, and its numbers are exact, unless it was stopped while a
// database did not answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulk/bulk.h"
#include "ports/job_store.h"
#include "ports/member_store.h"
#include "tocsin/error.h"

namespace tocsin {

// The progress of a bulk in one database, after a batch.
struct BulkBatch {
  std::int64_t changed = 0;         // in this database, in all batches
  bool is_done = false;             // every matching job has been visited
  std::vector<Candidate> due_soon;  // jobs that this batch gave a new due time, which may be far ahead; for hints
  std::optional<Error> refusal{};   // the database refuses to change a job, which the batch has left out: why
};

// Calls wait for the database. Error in_doubt: the change may have happened. Thread: owner only.
class BulkStore {
 public:
  virtual ~BulkStore() = default;

  // Control database only.

  // Where the shards live, as a text that differs once a shard was write-frozen or has moved. nullopt: a shard may be
  // frozen now, and count() may leave its jobs out.
  virtual Result<std::optional<std::string>> placement() = 0;
  // Stores a new bulk, which `node` runs under a lease of this length. `matched`: the sum of count() over all
  // databases. `placement`: from before count(). nullopt: a shard was frozen or has moved since. While a bulk runs, no
  // move freezes its shard (MoveStore::set_state), so a bulk visits each job once.
  virtual Result<std::optional<Bulk>> start(const BulkRequest& request, std::int64_t matched, NodeId node,
                                            Duration lease, const std::string& placement) = 0;
  virtual Result<std::optional<Bulk>> find(std::int64_t bulk_id) = 0;
  // The newest first, `limit` at most.
  virtual Result<std::vector<Bulk>> list(int limit) = 0;
  // Asks the node that runs the bulk to stop it; that node does so at its next keep(), within about a second. Changes
  // nothing if the bulk has ended. Returns the bulk; nullopt: there is no such bulk.
  virtual Result<std::optional<Bulk>> request_stop(std::int64_t bulk_id) = 0;
  // Gives `node` a running bulk whose lease has expired, and returns it. nullopt: there is none.
  virtual Result<std::optional<Bulk>> take_over(NodeId node, Duration lease) = 0;
  // The same for this bulk. nullopt also if a node runs it.
  virtual Result<std::optional<Bulk>> take_over(std::int64_t bulk_id, NodeId node, Duration lease) = 0;
  // Extends the lease, and stores the progress. `changed`: jobs changed in all databases. nullopt: `node` does not run
  // the bulk any more.
  virtual Result<std::optional<Bulk>> keep(std::int64_t bulk_id, NodeId node, std::int64_t changed, Duration lease) = 0;
  // Stores the end of the bulk: its state, changed and error. Also deletes bulks that ended more than 400 days ago.
  // False: `node` does not run the bulk any more; it is unchanged.
  virtual Result<bool> finish(const Bulk& bulk, NodeId node) = 0;

  // Every database.

  // How many jobs of this database match now. Error unavailable with field kTooSlow (tocsin/error.h): counting takes
  // too long.
  virtual Result<std::int64_t> count(const BulkRequest& request) = 0;
  // The progress of all earlier batches in this database, of any node. due_soon is empty.
  virtual Result<BulkBatch> progress(std::int64_t bulk_id) = 0;
  // Ends the bulk in this database: later batches change nothing. Returns how many jobs it has changed here.
  virtual Result<std::int64_t> close(std::int64_t bulk_id) = 0;
  // Changes at most `limit` matching jobs and stores the progress, in one transaction. Jobs that another transaction
  // has locked, or whose keys it holds, are visited again once, after all others, and changed if they match then; if
  // there are over 10,000 in a database, the further ones stay unchanged. So are jobs that the database refuses to
  // change: a batch that fails is repeated with fewer jobs, until such a job is alone and left out. Error: a table is
  // locked, or the removal of the type of a dead job is undecided, or more than kMostRefusedInARow jobs are refused one
  // after the other (ports/row_refusal.h), or the database does not answer. After an Error call again: a batch that was
  // stored is not repeated. Error invalid: repeating does not help. REQUIRES: limit in 1..1000.
  virtual Result<BulkBatch> run_batch(const Bulk& bulk, int limit) = 0;
};

// One database of a node and its store. Lists of these have the control database first.
struct BulkDatabase {
  DatabaseId database_id = 0;
  BulkStore* store = nullptr;
};

}  // namespace tocsin
