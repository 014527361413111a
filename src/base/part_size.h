// PartSize: how many rows one call writes while calls are refused because of single rows. A refused call is repeated
// with half as many rows, until the refused row is alone; each success doubles the number. The finisher has one, each
// claimer has one (for jobs that it fires), and the lease reaper has one per kind of call; PartWriter, PgJobStore (for
// claims), PgBulkStore and the relay of outboxes have one. Thread: owner only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace tocsin {

class PartSize {
 public:
  std::size_t most() const { return most_; }  // 1 or more
  void note_refused(std::size_t rows) { most_ = std::max<std::size_t>(1, rows / 2); }
  void note_success() { most_ = std::min(most_, kUnlimited / 2) * 2; }

 private:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max() / 2;
  std::size_t most_ = kUnlimited;
};

}  // namespace tocsin
