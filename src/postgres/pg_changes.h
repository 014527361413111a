// PgChanges: carries out one call of PgClientStore::change_together; each call makes one. It writes the
// cancels, the cancels by key (biz_id) and the new deadlines of many callers with one statement per kind.
//
// How a batch is written:
//  - It is cut into sub-batches in which each kind of request names a job or key at most once; usually there is one.
//  - A sub-batch is one transaction.
//  - The transaction is rolled back if a row stays locked for 50 ms, or the shard of a new deadline is write-frozen (it
//    is moving to another database).
//  - Then the sub-batch is written kind by kind: one transaction for the cancels, one for the cancels by key, one
//    or more for new deadlines. Rows that are still locked are skipped, and their requests are answered `locked`.
//  - The same is done if the database refuses a row. Each kind is then written in smaller and smaller parts
//    (PartWriter) until the request that is the reason is alone, and gets the Error. After kMostRefusedInARow of a
//    kind, in all sub-batches together, the rest of the kind gets it untried.
//  - With ChangeBatch::is_retry sub-batches are written kind by kind from the start.
//  - Requests that changed nothing are answered by what their jobs and keys are then. If that cannot be read, they get
//    the Error, and so do the requests of later sub-batches, untried.
//
// Thread: the session's owner.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ports/client_store.h"
#include "ports/row_refusal.h"
#include "postgres/part_writer.h"
#include "postgres/queries.h"
#include "postgres/session.h"

namespace tocsin {

// sql/parts/ended_of_key answers this in place of a status, in a row that means: the key has more finished jobs.
constexpr int kMoreEnded = -1;

class PgChanges {
 public:
  // `session` and `batch` must outlive the object. `shards`: the installation's shard count. Call run() once.
  PgChanges(Session& session, int shards, const ChangeBatch& batch);

  // Returns the replies, in the order of the batch. Error in_doubt: a part of the batch may be written. Other Errors:
  // nothing is written.
  Result<ChangeBatchReply> run();

 private:
  using Indices = std::vector<std::size_t>;
  struct KeyArrays;
  // Indices into the batch, sorted by job id or key. Statements lock rows in that order, so two of one kind cannot
  // deadlock; the lock time-out of 50 ms ends a deadlock between kinds.
  struct SubBatch {
    Indices cancels, key_cancels, changes;
    bool is_empty() const { return cancels.empty() && key_cancels.empty() && changes.empty(); }
    int kinds() const { return !cancels.empty() + !key_cancels.empty() + !changes.empty(); }
  };
  // The requests of one kind that the database refuses.
  struct Refusals {
    PartWriter parts;
    std::map<std::size_t, Error> of{};  // by index in the batch
  };
  using WriteItems = std::function<void(pqxx::transaction_base&, const Indices&)>;

  SubBatch next_sub_batch();
  Status write(const SubBatch& part);
  Status write_together(const SubBatch& part);
  Status write_by_kind(const SubBatch& part);
  // Executes a statement that skips locked rows, in a transaction of its own.
  Status write_free(const std::function<void(pqxx::transaction_base&)>& statement);
  // Refuses the requests of kinds that are not tried any more, and removes them from the part.
  void refuse_untried(SubBatch& part);
  // Executes `statement` for the items, in parts if rows of them are refused, or their shards are write-frozen. Items
  // of frozen shards, and all if the table is locked, are not written; answer_unchanged() then answers them.
  Status write_one_kind(Refusals& refusals, const Indices& items, const WriteItems& statement);
  void cancel(pqxx::transaction_base& tx, const Indices& items, sql::LockPolicy policy);
  void cancel_keys(pqxx::transaction_base& tx, const Indices& items);  // all or none; fills the whole reply
  // For kind by kind: skips locked rows, and fills only the ids that were cancelled.
  void cancel_free_keys(pqxx::transaction_base& tx, const Indices& items);
  void change(pqxx::transaction_base& tx, const Indices& items, sql::LockPolicy policy);
  bool is_unanswered_cancel(std::size_t i) const;
  bool is_unanswered_change(std::size_t i) const;
  // Answers the requests that changed nothing and were not refused, by the present state of their jobs and keys.
  Status answer_unchanged(const SubBatch& part);
  // Answers them with this Error, because that state could not be read. What was written keeps its answer.
  void leave_unanswered(const SubBatch& part, const Error& why);
  void refuse_all(const SubBatch& part, const Error& why);  // they were not tried
  void answer_unchanged_jobs(pqxx::transaction_base& tx, const SubBatch& part);
  void answer_keys_by_state(pqxx::transaction_base& tx, const Indices& items);
  void answer_keys(pqxx::transaction_base& tx, const Statement& statement, const Indices& items);
  KeyArrays arrays_of(const Indices& key_cancels) const;
  // Answers repeated cancels of one job: only the first answer may be `cancelled`, later ones are `finished`.
  void answer_repeated_cancels();
  // A request may name an alias id (the id of an outbox entry whose idempotency key already had a job). Repeats such
  // requests with the id of that job.
  Status redo_for_existing_jobs();

  ChangeBatchReply take_reply();

  Session& session_;
  const int shards_;
  const ChangeBatch& batch_;
  // By index in the batch; those of refused requests do not count.
  struct Replies {
    std::vector<CancelReply> cancels;
    std::vector<KeyCancelReply> key_cancels;
    std::vector<ChangeReply> changes;
  } reply_;
  Refusals refused_cancels_, refused_keys_, refused_changes_;
  std::vector<bool> has_cancelled_, has_changed_;     // by index in the batch: the request was written
  std::vector<bool> is_taken_key_, is_taken_change_;  // by index in the batch: it is in a sub-batch
  ChangeBatch existing_;                              // for redo_for_existing_jobs()
  Indices existing_cancels_, existing_changes_;       // their indices in batch_
  bool is_by_kind_ = false;                           // the last sub-batch was written kind by kind
  bool has_begun_ = false;                            // the first sub-batch exists; it has all cancels
  bool has_written_ = false;                          // a transaction was committed
};

}  // namespace tocsin
