// Runs one ChangeBatch (JobDesk::change_together) on PostgreSQL: cancels, cancels by key and new deadlines of many
// callers, with one statement per kind (ADR 0040).
//
// The batch is cut into sub-batches that name each job and each key once; one is enough unless callers repeat
// themselves. A sub-batch is one transaction. If a row in it is locked or its shard refuses changes, the sub-batch is
// written again kind by kind without such rows, each kind in a transaction of its own. Thread: owner only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ports/job_desk.h"
#include "postgres/queries.h"
#include "postgres/session.h"

namespace tocsin {

class PgChanges {
 public:
  // `session` and `batch` must outlive the object. `shards`: the installation's shard count. Call run() once.
  PgChanges(Session& session, int shards, const ChangeBatch& batch);

  // The replies, in the order of the batch. Error in_doubt: some of the batch may be written. Any other Error: nothing
  // was.
  Result<ChangeBatchReply> run();

 private:
  using Indexes = std::vector<std::size_t>;
  struct KeyArrays;
  // Indexes into the batch, sorted by job id or key, so that two transactions lock rows in one order.
  struct SubBatch {
    Indexes cancels, key_cancels, changes;
    bool is_empty() const { return cancels.empty() && key_cancels.empty() && changes.empty(); }
    int kinds() const { return !cancels.empty() + !key_cancels.empty() + !changes.empty(); }
  };

  SubBatch next_sub_batch();
  Status write(const SubBatch& part);
  Status write_together(const SubBatch& part);
  Status write_by_kind(const SubBatch& part);
  Status write_one_kind(const std::function<void(pqxx::transaction_base&)>& statement);
  // In halves, each a transaction, while a moving shard among them refuses changes.
  Status write_changes(const Indexes& items);
  void cancel(pqxx::transaction_base& tx, const Indexes& items, sql::LockPolicy policy);
  void cancel_keys(pqxx::transaction_base& tx, const Indexes& items);       // all or none; fills the whole replies
  void cancel_free_keys(pqxx::transaction_base& tx, const Indexes& items);  // skips locked rows; only the ids cancelled
  void change(pqxx::transaction_base& tx, const Indexes& items, sql::LockPolicy policy);
  // Reads the state of the jobs and keys that the statements did not change, and answers with it.
  Status answer_unchanged(const SubBatch& part);
  void answer_unchanged_jobs(pqxx::transaction_base& tx, const SubBatch& part);
  void answer_keys_by_state(pqxx::transaction_base& tx, const Indexes& items);
  void answer_keys(pqxx::transaction_base& tx, const Statement& statement, const Indexes& items);
  KeyArrays arrays_of(const Indexes& key_cancels) const;
  void answer_repeated_cancels();
  // A caller may name an outbox entry (a job created through SQL for another database) whose idempotency key had a job
  // already. Writes such requests with the id of that job.
  Status change_existing();

  Session& session_;
  const int shards_;
  const ChangeBatch& batch_;
  ChangeBatchReply reply_;
  // By index in the batch: whether it is written; whether a sub-batch has taken it.
  std::vector<bool> has_cancelled_, has_changed_;
  std::vector<bool> is_taken_key_, is_taken_change_;
  ChangeBatch existing_;                         // for change_existing()
  Indexes existing_cancels_, existing_changes_;  // their indexes in batch_
  bool is_by_kind_ = false;                      // of the last sub-batch: its key replies lack what was not cancelled
  bool has_begun_ = false;
  bool has_written_ = false;
};

}  // namespace tocsin
