// A transaction of a SQL caller with the database in memory: it has several statements, stays open between them, and
// ends by commit or roll-back. Used by the simulator.
#pragma once

#include <optional>
#include <vector>

#include "support/fake_database.h"

namespace tocsin {

// Its writes become visible at commit(). Until its end it holds the idempotency keys of the jobs that it creates and
// the rows of the jobs that it cancels. From its first write on, scans know that it is open. A crash, or a standby that
// takes over, rolls it back. Thread: owner only.
class FakeDatabase::Transaction {
 public:
  explicit Transaction(FakeDatabase& database) : database_(database), generation_(database.generation()) {}
  ~Transaction() { roll_back(); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Gives it a transaction id, as its first write would: scans know from now on that it is open.
  void take_id(WallTime now) {
    if (!writer_) writer_.emplace(database_, now);
  }
  // Whether another transaction holds the key.
  bool waits_for(const NewJob& job) const { return !has_ended() && !own(job) && database_.is_held(job); }

  // As tocsin.create_job. nullopt: another transaction holds the key; PostgreSQL would wait for its end.
  std::optional<CreateReply> create(const NewJob& job, WallTime now);
  // As tocsin.cancel_job, for a job that is committed.
  CancelReply cancel(JobId job, WallTime now);
  // False: a crash or a failover has ended it before.
  bool commit();
  void roll_back();

 private:
  struct Made {
    Row row;
    WallTime at;
  };
  const Made* own(const NewJob& job) const;  // the job that this transaction made with the key; nullptr: none
  bool has_ended() const { return generation_ != database_.generation(); }
  void release();

  FakeDatabase& database_;
  const std::uint64_t generation_;
  std::optional<Writer> writer_;
  std::vector<Made> made_;
  std::vector<std::pair<JobId, WallTime>> cancelled_;
};

}  // namespace tocsin
