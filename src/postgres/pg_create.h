// PgCreate: one attempt of PgClientStore to write a batch of new jobs. It is a single INSERT if no job has an
// idempotency key, otherwise a short transaction. PgClientStore makes a PgCreate, with new ids, for each attempt.
// Thread: owner only (the session's).
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
  // connection are refused (has_bad_ids()), because the present one may have reached a standby whose sequence gives the
  // same numbers again. `session`, `jobs` and `ids` must outlive the object.
  PgCreate(Session& session, std::span<const NewJob> jobs, const std::vector<JobId>& ids, std::uint64_t drawn_on,
           CreateMode mode);

  // Writes the batch; call once. Ok: the batch is committed, or a job was refused and nothing is written
  // (is_undone_by_refusal()). Error in_doubt: the answer was lost; all or nothing is written. Other Errors: nothing is
  // written.
  Status run();
  // One reply per job, in order; call once, after Ok or in_doubt.
  //  - After a refusal of the whole batch only the replies of refused jobs count.
  //  - After in_doubt the replies hold if the commit happened. In a batch without keys they have a job_id, but no
  //    times.
  std::vector<CreateReply> take_replies() { return std::move(replies_); }
  // After Error conflict. True: a repetition needs new ids and may then succeed; an id exists already, the ids are of
  // an earlier connection, or the job that had an idempotency key vanished during the attempt. False: another
  // transaction was in the way.
  bool has_bad_ids() const { return has_bad_ids_; }
  // After in_doubt: the jobs to look for. If all exist, the commit happened. In a batch without keys some may be
  // missing after a commit, because their types took no jobs.
  std::vector<JobId> created_ids() const;

 private:
  // An item is the index of a job in jobs_. Exceptions of these functions become Errors in the session.
  bool has_keys() const;
  void refuse_old_ids();
  // `keyed`: inserts the items with a key, except those whose key a live job has; otherwise inserts the items without a
  // key. Sets has_bad_ids_ if an id existed (LastServerError::duplicate_id()); an existing idempotency key has the same
  // SQLSTATE.
  void insert(pqxx::transaction_base& tx, bool keyed);
  void exec_insert(pqxx::transaction_base& tx, bool keyed);  // the statement of insert()
  using Index = std::unordered_map<JobId, std::size_t>;      // items by their ids
  // Settles the items of types that take no jobs as refused, and removes them from `index`. settle_keys() may still
  // find a finished job with such an item's key. False: there are no such items.
  bool refuse_closed_types(const pqxx::field& closed, Index& index);
  // The items that were inserted although a finished job has their key.
  std::unordered_set<std::size_t> created_twice(pqxx::transaction_base& tx);
  // Finds the jobs, live and finished, that had the items' keys before, and applies on_conflict to each.
  void settle_keys(pqxx::transaction_base& tx);
  // Deletes jobs that were inserted although a finished job has their key.
  void undo(pqxx::transaction_base& tx, const std::vector<std::size_t>& items);
  // A pending job that has the key of an item, and that the item's on_conflict may change.
  struct Update {
    std::size_t item;
    Job existing;
  };
  // Several updates of one job are applied one after the other, in the order of their items.
  void update_existing(pqxx::transaction_base& tx, std::vector<Update> updates);
  // The statement of update_existing(); returns the changed jobs. At most one update per job, because a statement
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
