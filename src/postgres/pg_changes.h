// Runs one ChangeBatch (JobDesk::change_together) on PostgreSQL: cancels, cancels by key and new deadlines of many
// callers, one statement per kind, all in one transaction (ADR 0040).
// Thread: owner only.
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
  // Both must outlive the object. `shards`: as installed in the database.
  PgChanges(Session& session, int shards, const ChangeBatch& batch);

  // Error: applies to the whole batch.
  Result<ChangeBatchReply> run();

 private:
  using Indexes = std::vector<std::size_t>;
  struct KeyArrays;
  // The part of the batch that one transaction writes: each job and each key once. Ids are sorted, so that two
  // transactions lock rows in one order.
  struct Turn {
    Indexes cancels, key_cancels, changes;
    bool is_empty() const { return cancels.empty() && key_cancels.empty() && changes.empty(); }
    int kinds() const { return !cancels.empty() + !key_cancels.empty() + !changes.empty(); }
  };

  Turn next_turn();
  Status write(const Turn& turn);
  Status write_together(const Turn& turn);
  Status write_apart(const Turn& turn);
  Status write_alone(const std::function<void(pqxx::transaction_base&)>& statement);
  Status write_changes_apart(const Indexes& items);
  void cancel(pqxx::transaction_base& tx, const Indexes& items, sql::CancelPass pass);
  void cancel_keys(pqxx::transaction_base& tx, const Indexes& items);  // answers the keys as well
  void cancel_keys_apart(pqxx::transaction_base& tx, const Indexes& items);
  void change(pqxx::transaction_base& tx, const Indexes& items, sql::CancelPass pass);
  // Answers what the statements did not change.
  Status tell_rest(const Turn& turn);
  void tell_rest_of_jobs(pqxx::transaction_base& tx, const Turn& turn);
  void tell_rest_of_keys(pqxx::transaction_base& tx, const Indexes& items);
  void tell_keys(pqxx::transaction_base& tx, const Statement& statement, const Indexes& items);
  KeyArrays arrays_of(const Indexes& key_cancels) const;
  void answer_repeated_cancels();
  // Repeats changes for ids of outbox entries that stand for other jobs, with the ids of those.
  Status change_existing();

  Session& session_;
  const int shards_;
  const ChangeBatch& batch_;
  ChangeBatchReply reply_;
  // By item: whether it has an answer, or belongs to a turn.
  std::vector<bool> has_cancelled_, has_changed_;
  std::vector<bool> is_taken_key_, is_taken_change_;
  ChangeBatch existing_;
  Indexes existing_cancels_, existing_changes_;  // where in the batch they come from
  bool is_apart_ = false;                        // the turn was written kind by kind, and its keys have no answer yet
  bool has_begun_ = false;
  bool has_written_ = false;
};

}  // namespace tocsin
