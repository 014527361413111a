// PgCreate: one attempt of PgClientStore to write a batch of new jobs: a single INSERT when no job has an idempotency
// key, else a short transaction. PgClientStore makes a PgCreate, with fresh ids, for each attempt. Thread: owner only
// (the session's thread).
#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ports/client_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgCreate {
 public:
  // `ids[i]`: the job_id for `jobs[i]`. `drawn_on`: Session::connections() when the ids were drawn. Ids of an earlier
  // connection are refused: the next one may reach a standby whose sequence gives the same numbers again. `session`,
  // `jobs` and `ids` must outlive the object.
  PgCreate(Session& session, std::span<const NewJob> jobs, const std::vector<JobId>& ids, std::uint64_t drawn_on,
           CreateMode mode);

  // Writes the batch; call once. Ok: it is committed; or, with is_undone_by_refusal(), a job was refused and nothing is
  // written. Error in_doubt: the answer was lost, all or nothing is written. Other errors: nothing is written.
  Status run();
  // After ok or in_doubt: one reply per job, in order; call once. After a refusal of the whole batch only the refused
  // replies count. After in_doubt the replies hold if the commit happened; those of a batch without keys have a job_id
  // only, no times.
  std::vector<CreateReply> take_replies() { return std::move(replies_); }
  // After Error conflict: a repetition may succeed, but not with numbers drawn before. An id exists already, the ids
  // are of an earlier connection, or the job that had an idempotency key vanished during the attempt. False: another
  // transaction was in the way.
  bool has_bad_ids() const { return has_bad_ids_; }
  // After in_doubt: jobs that exist if, and only if, the commit happened.
  std::vector<JobId> created_ids() const;

 private:
  // An item is a job of the batch, by its index in jobs_. What these functions throw becomes an Error in the session.
  bool has_keys() const;
  void refuse_old_ids();
  // Inserts the items that have a key (`keyed`), except those whose key a live job has; or the items without a key.
  // Notes whether an id was taken: read from the key in the error's detail, which is not translated. The SQLSTATE is
  // the same for a taken idempotency key, and the constraint is named after one of eight tables.
  void insert(pqxx::transaction_base& tx, bool keyed);
  void exec_insert(pqxx::transaction_base& tx, bool keyed);  // the statement of insert()
  using Index = std::unordered_map<JobId, std::size_t>;      // items by their ids
  // Settles the items of types that take no jobs as refused, and takes them out of `index`; settle_keys() may still
  // find the ended job of their key. False: there are none.
  bool refuse_closed_types(const pqxx::field& closed, Index& index);
  // Of the items that were inserted those whose key a finished job has.
  std::unordered_set<std::size_t> created_twice(pqxx::transaction_base& tx);
  // Finds the jobs, live and finished, that had the items' keys before, and applies on_conflict to each.
  void settle_keys(pqxx::transaction_base& tx);
  // Deletes the jobs of items that were inserted, because no live job has their key, but a finished one has it.
  void undo(pqxx::transaction_base& tx, const std::vector<std::size_t>& items);
  // A pending job that has the key of an item, and that the item's on_conflict may change.
  struct Update {
    std::size_t item;
    Job existing;
  };
  // Several updates of one job are applied one after the other, in the order of their items.
  void update_existing(pqxx::transaction_base& tx, std::vector<Update> updates);
  // The statement of update_existing(); returns the changed jobs. `updates`: by existing job, because one statement
  // changes a row only once.
  pqxx::result update_all(pqxx::transaction_base& tx, const std::map<JobId, Update>& updates);
  // Sets the reply of an item to `existing`, the job that has its key.
  void settle(std::size_t item, CreateReply::Kind kind, Job existing);

  Session& session_;
  std::span<const NewJob> jobs_;
  const std::vector<JobId>& ids_;
  const std::uint64_t drawn_on_;
  const CreateMode mode_;
  std::vector<CreateReply> replies_;  // by item
  std::vector<bool> is_settled_;      // by item: it was inserted, or the job that has its key was found
  bool has_bad_ids_ = false;
};

}  // namespace tocsin
