// PgChanges: one call of PgJobDesk::change_together. It writes cancels, cancels by key and new deadlines of many
// callers with one statement per kind.
//
// The batch is cut into sub-batches that name each job and each key once; usually there is one. A sub-batch is one
// transaction. If a row stays locked for 50 ms, or the shard of a new deadline is write-frozen, the sub-batch is
// written again kind by kind, each kind in a transaction of its own (new deadlines in several), without such rows:
// their requests are answered `locked`. With ChangeBatch::is_retry it is written kind by kind at once. Thread: that of
// the session.
#pragma once

#include <functional>
#include <vector>

#include "ports/job_desk.h"
#include "postgres/queries.h"
#include "postgres/session.h"

namespace tocsin {

constexpr int kMoreEnded = -1;  // what ended_of_key answers in place of a status: there are more

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
  // Ok also after contention; then nothing of the kind is written.
  Status write_one_kind(const std::function<void(pqxx::transaction_base&)>& statement);
  // After contention again in halves, each a transaction: jobs of a write-frozen shard delay no others.
  Status write_changes(const Indices& items);
  void cancel(pqxx::transaction_base& tx, const Indices& items, sql::LockPolicy policy);
  void cancel_keys(pqxx::transaction_base& tx, const Indices& items);  // all or none; fills the whole replies
  // Skips locked rows; fills only the ids cancelled.
  void cancel_free_keys(pqxx::transaction_base& tx, const Indices& items);
  void change(pqxx::transaction_base& tx, const Indices& items, sql::LockPolicy policy);
  // Reads the state of the jobs and keys that the statements did not change, and answers with it.
  Status answer_unchanged(const SubBatch& part);
  void answer_unchanged_jobs(pqxx::transaction_base& tx, const SubBatch& part);
  void answer_keys_by_state(pqxx::transaction_base& tx, const Indices& items);
  void answer_keys(pqxx::transaction_base& tx, const Statement& statement, const Indices& items);
  KeyArrays arrays_of(const Indices& key_cancels) const;
  void answer_repeated_cancels();  // of a job named again: as the first, but `finished` if that is `cancelled`
  // A caller may name an outbox entry (a job created through SQL for another database) whose idempotency key had a job
  // already. Writes such requests with the id of that job.
  Status change_existing();

  Session& session_;
  const int shards_;
  const ChangeBatch& batch_;
  ChangeBatchReply reply_;
  std::vector<bool> has_cancelled_, has_changed_;     // by index in the batch: the request is written
  std::vector<bool> is_taken_key_, is_taken_change_;  // by index in the batch: a sub-batch has it
  ChangeBatch existing_;                              // for change_existing()
  Indices existing_cancels_, existing_changes_;       // their indices in batch_
  bool is_by_kind_ = false;   // the last sub-batch was written kind by kind: key replies have only what was cancelled
  bool has_begun_ = false;    // the first sub-batch is made: it has all cancels
  bool has_written_ = false;  // a transaction was committed
};

}  // namespace tocsin
