// A transaction of a SQL caller in the database in memory: several statements, time between them, and an end.
#pragma once

#include <optional>
#include <vector>

#include "support/fake_database.h"

namespace tocsin {

// Nobody sees what it writes before it is committed. Until its end it holds the keys of the jobs that it creates and
// the rows of those that it cancels, and from its first write on scans know that it is open. A crash or a standby that
// takes over ends it: nothing of it happened. Thread: owner only.
class FakeDatabase::Transaction {
 public:
  explicit Transaction(FakeDatabase& database) : database_(database), generation_(database.generation()) {}
  ~Transaction() { roll_back(); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

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
  void begin(WallTime now) {
    if (!writer_) writer_.emplace(database_, now);
  }
  bool has_ended() const { return generation_ != database_.generation(); }
  void release();

  FakeDatabase& database_;
  const std::uint64_t generation_;
  std::optional<Writer> writer_;
  std::vector<Made> made_;
  std::vector<std::pair<JobId, WallTime>> cancelled_;
};

}  // namespace tocsin
