// PgChanges: carries out one call of PgClientStore::change_together. It writes the cancels, cancels by key and new
// deadlines of many callers with one statement per kind.
//
// The batch is cut into sub-batches that name each job and each key once; usually there is one. A sub-batch is one
// transaction. When a row stays locked for 50 ms, or the shard of a new deadline is write-frozen (it is moving to
// another database), the transaction is rolled back and the sub-batch is written again kind by kind. Each kind has a
// transaction of its own then, new deadlines have several. Rows that are still locked are left out, and their requests
// are answered `locked`. With ChangeBatch::is_retry the first try is kind by kind. Thread: that of the session.
#pragma once

#include <functional>
#include <vector>

#include "ports/client_store.h"
#include "postgres/queries.h"
#include "postgres/session.h"

namespace tocsin {

constexpr int kMoreEnded = -1;  // in place of a status, in answers of sql/parts/ended_of_key: the key has more jobs

class PgChanges {
 public:
  // `session` and `batch` must outlive the object. `shards`: the installation's shard count. Call run() once.
  PgChanges(Session& session, int shards, const ChangeBatch& batch);

  // The replies, in the order of the batch. Error in_doubt: some of the batch may be written. Any other Error: nothing
  // is.
  Result<ChangeBatchReply> run();

 private:
  using Indices = std::vector<std::size_t>;
  struct KeyArrays;
  // Indices into the batch, by job id or key: sub-batches lock rows in this order, so two cannot deadlock.
  struct SubBatch {
    Indices cancels, key_cancels, changes;
    bool is_empty() const { return cancels.empty() && key_cancels.empty() && changes.empty(); }
    int kinds() const { return !cancels.empty() + !key_cancels.empty() + !changes.empty(); }
  };

  SubBatch next_sub_batch();
  Status write(const SubBatch& part);
  Status write_together(const SubBatch& part);
  Status write_by_kind(const SubBatch& part);
  // On a lock conflict it returns Ok and has written nothing; the requests of this kind are answered `locked` later.
  Status write_one_kind(const std::function<void(pqxx::transaction_base&)>& statement);
  // On a lock conflict each half is tried in a transaction of its own, so that jobs of a write-frozen shard delay no
  // others.
  Status write_changes(const Indices& items);
  void cancel(pqxx::transaction_base& tx, const Indices& items, sql::LockPolicy policy);
  void cancel_keys(pqxx::transaction_base& tx, const Indices& items);  // all or none; fills the whole replies
  // Kind by kind: skips locked rows and fills only the ids that were cancelled.
  void cancel_free_keys(pqxx::transaction_base& tx, const Indices& items);
  void change(pqxx::transaction_base& tx, const Indices& items, sql::LockPolicy policy);
  // Reads the state of the jobs and keys that the statements did not change, and answers with it.
  Status answer_unchanged(const SubBatch& part);
  void answer_unchanged_jobs(pqxx::transaction_base& tx, const SubBatch& part);
  void answer_keys_by_state(pqxx::transaction_base& tx, const Indices& items);
  void answer_keys(pqxx::transaction_base& tx, const Statement& statement, const Indices& items);
  KeyArrays arrays_of(const Indices& key_cancels) const;
  // A job that is named twice in the batch: one answer is `cancelled` at most, later ones are `finished` then.
  void answer_repeated_cancels();
  // A caller may name a row of the outbox (a job created through SQL for another database) whose idempotency key had a
  // job already. Writes such requests again with the id of that job.
  Status redo_for_existing_jobs();

  Session& session_;
  const int shards_;
  const ChangeBatch& batch_;
  ChangeBatchReply reply_;
  std::vector<bool> has_cancelled_, has_changed_;     // by index in the batch: the request is written
  std::vector<bool> is_taken_key_, is_taken_change_;  // by index in the batch: a sub-batch has it
  ChangeBatch existing_;                              // for redo_for_existing_jobs()
  Indices existing_cancels_, existing_changes_;       // their indices in batch_
  bool is_by_kind_ = false;   // the last sub-batch was written kind by kind: key replies have only what was cancelled
  bool has_begun_ = false;    // the first sub-batch is made: it has all cancels
  bool has_written_ = false;  // a transaction was committed
};

}  // namespace tocsin
