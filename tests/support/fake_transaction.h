// A transaction of a SQL caller in the database in memory: several statements, time between them, and an end.
#pragma once

#include <optional>
#include <vector>

#include "support/fake_database.h"

namespace tocsin {

// What it writes is not visible before it is committed. Until its end it holds the keys of the jobs that it creates and
// the rows of those that it cancels, and from its first write on scans know that it is open. A crash or a standby that
// takes over ends it: nothing of it happened. Thread: owner only.
class FakeDatabase::Transaction {
 public:
  explicit Transaction(FakeDatabase& database) : database_(database), generation_(database.generation()) {}
  ~Transaction() { roll_back(); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // From now on scans know that it is open, as from its first write.
  void take_id(WallTime now) {
    if (!writer_) writer_.emplace(database_, now);
  }
  // Whether another transaction holds the key.
  bool waits_for(const NewJob& job) const { return !has_ended() && !own(job) && database_.is_held(job); }

  // As tocsin.create_job. nullopt: another transaction holds the key, for whose end PostgreSQL waits.
  std::optional<CreateReply> create(const NewJob& job, WallTime now);
  // As tocsin.cancel_job, of a job that was committed before.
  CancelReply cancel(JobId job, WallTime now);
  // False: it had ended before.
  bool commit();
  void roll_back();

 private:
  struct Made {
    Row row;
    WallTime at;
  };
  const Made* own(const NewJob& job) const;  // that it made with this key; nullptr: none
  bool has_ended() const { return generation_ != database_.generation(); }
  void release();

  FakeDatabase& database_;
  const std::uint64_t generation_;
  std::optional<Writer> writer_;
  std::vector<Made> made_;
  std::vector<std::pair<JobId, WallTime>> cancelled_;
};

}  // namespace tocsin
