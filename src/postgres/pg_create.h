// Runs one attempt of JobDesk::create on PostgreSQL: a single statement when no job has an idempotency key, else a
// short transaction. PgJobDesk draws the ids and repeats the attempt with fresh ones. Thread: owner only.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "ports/job_desk.h"
#include "postgres/session.h"

namespace tocsin {

class PgCreate {
 public:
  // ids[i]: the job_id reserved for jobs[i]. `drawn_on`: the connection that drew them (Session::connections()). All
  // references must outlive the object. Call run() once.
  PgCreate(Session& session, std::span<const NewJob> jobs, const std::vector<JobId>& ids, std::uint64_t drawn_on,
           CreateMode mode);

  // Ok: done, or refused as a whole (all_or_nothing); see take_replies(). Error in_doubt: the commit may have happened.
  Status run();
  // After run() returned ok or in_doubt: one reply per job, in order, valid if the commit happened.
  std::vector<CreateReply> take_replies() { return std::move(replies_); }
  // After run() failed with conflict: the ids exist already, or were drawn on an earlier connection. Draw new ones.
  bool has_bad_ids() const { return has_bad_ids_; }
  // After run() returned in_doubt: jobs that exist if, and only if, the commit happened.
  std::vector<JobId> created_ids() const;

 private:
  bool has_keys() const;
  void refuse_old_ids();
  void insert(pqxx::transaction_base& tx, bool keyed);
  void insert_all(pqxx::transaction_base& tx, bool keyed);
  void settle_keys(pqxx::transaction_base& tx);
  void undo(pqxx::transaction_base& tx, const std::vector<std::size_t>& items);
  // A pending job that has the idempotency key of an item, and that the item's on_conflict may change.
  struct Update {
    std::size_t item;
    Job existing;
  };
  void update_existing(pqxx::transaction_base& tx, std::vector<Update> updates);
  // One statement: REQUIRES that each update is of another job, hence the map.
  pqxx::result update_all(pqxx::transaction_base& tx, const std::map<JobId, Update>& updates);
  void settle(std::size_t item, CreateReply::Kind kind, Job existing);

  Session& session_;
  std::span<const NewJob> jobs_;
  const std::vector<JobId>& ids_;
  const std::uint64_t drawn_on_;
  const CreateMode mode_;
  std::vector<CreateReply> replies_;
  std::vector<bool> is_settled_;
  bool has_bad_ids_ = false;
};

}  // namespace tocsin
