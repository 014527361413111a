// The store of bulk operations, one per database. Implemented by PgBulkStore (src/postgres) and FakeBulkStore
// (tests/support).
//
// The control database keeps one row per bulk: the request, the state, and which node runs it until when. Every
// database keeps the progress of a bulk in its own shards, written in the transaction that changes the jobs, so that a
// bulk that another node takes over continues after the last batch, and its numbers are exact.
#pragma once

#include <optional>
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
  std::vector<Candidate> due_soon;  // jobs changed by this batch that are due within the lookahead
};

// Thread: owner only.
class BulkStore {
 public:
  virtual ~BulkStore() = default;

  // Control database only.

  // Stores a running bulk that `node` runs for the time of `lease`.
  virtual Result<Bulk> start(const BulkRequest& request, std::int64_t matched, NodeId node, Duration lease) = 0;
  virtual Result<std::optional<Bulk>> find(std::int64_t bulk_id) = 0;
  // The newest first.
  virtual Result<std::vector<Bulk>> list(int limit) = 0;
  // Ends a running bulk after the current batch. Returns the bulk; nullopt: there is none.
  virtual Result<std::optional<Bulk>> request_stop(std::int64_t bulk_id) = 0;
  // A running bulk whose lease has ended, now run by `node`; nullopt: there is none.
  virtual Result<std::optional<Bulk>> take_over(NodeId node, Duration lease) = 0;
  // Extends the lease and stores the progress. nullopt: `node` does not run it any more.
  virtual Result<std::optional<Bulk>> keep(std::int64_t bulk_id, NodeId node, std::int64_t changed, Duration lease) = 0;
  // False: `node` does not run it any more; nothing was changed.
  virtual Result<bool> finish(const Bulk& bulk, NodeId node) = 0;

  // Every database.

  // How many jobs the bulk would change in this database now. Error unavailable with field kTooSlow: counting takes
  // too long.
  virtual Result<std::int64_t> count(const BulkRequest& request) = 0;
  // The progress of earlier batches in this database, whichever node ran them.
  virtual Result<BulkBatch> progress(std::int64_t bulk_id) = 0;
  // Changes at most `limit` matching jobs and stores the progress, in one transaction. Jobs that another transaction
  // holds locked are visited again after all others, once; over 10,000 of them in a database are left unchanged.
  // REQUIRES: limit in 1..1000.
  virtual Result<BulkBatch> run_batch(const Bulk& bulk, int limit) = 0;
};

// The stores of all databases of a node, the control database first.
struct BulkDatabase {
  DatabaseId database_id = 0;
  BulkStore* store = nullptr;
};

}  // namespace tocsin
