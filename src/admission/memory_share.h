// MemoryShare: how many due jobs a type keeps in memory while they may not start. JobAdmission makes the rest backlog,
// which is claimed from the table later, so jobs that wait do not take memory from jobs that could start.
//
// Rules: a type counts as held back if it has max_running or rate_per_s, if it is a pull type, or if its start pool is
// closed or starts fewer jobs within the lookahead than are due; whether a limit stops it now does not matter.
// Held-back types together keep at most a quarter of the memory, in equal parts, and each at most a 32nd and one job.
// Other types keep all. Thread: any.
#pragma once

#include <algorithm>
#include <cstddef>

#include "ports/biz_type.h"

namespace tocsin {

class MemoryShare {
 public:
  // `capacity`: jobs that the engine keeps in memory at most.
  MemoryShare(std::size_t capacity, Duration lookahead)
      : quarter_(capacity / 4),
        most_(capacity / 32 + 1),
        lookahead_s_(std::chrono::duration<double>(lookahead).count()) {}

  // `due`: jobs of the type that are due and in memory. A capacity of 0 is a closed pool.
  bool is_held_back(const BizType& type, std::size_t due) const {
    if (type.is_pull() || type.max_running || type.rate_per_s) return true;
    if (!type.pool) return false;
    return type.pool->capacity() == 0 || static_cast<double>(due) > type.pool->starts_per_s() * lookahead_s_;
  }

  // How many jobs each held-back type keeps. `types`: how many are held back.
  std::size_t of_each(std::size_t types) const { return std::min(most_, quarter_ / std::max<std::size_t>(1, types)); }

 private:
  const std::size_t quarter_, most_;
  const double lookahead_s_;
};

}  // namespace tocsin
