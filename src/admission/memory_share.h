// MemoryShare: how many due jobs a type may keep in memory when a limit may stop them. JobAdmission makes the rest
// backlog (overdue jobs that are claimed from the table later), so jobs that wait do not take memory from jobs that
// could start.
//
// Rules: a type counts as limited if it has max_running or rate_per_s, if it is a pull type, or if its start pool is
// closed or starts fewer jobs within the lookahead than are due. Whether a limit stops it now does not matter. All
// limited types together keep at most a quarter of the capacity, in equal parts, and each at most capacity / 32 + 1
// jobs. Other types keep all. Thread: any.
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
        max_per_type_(capacity / 32 + 1),
        lookahead_s_(std::chrono::duration<double>(lookahead).count()) {}

  // `due`: jobs of the type that are due and in memory. A capacity of 0 is a closed pool.
  bool is_limited(const BizType& type, std::size_t due) const {
    if (type.is_pull() || type.max_running || type.rate_per_s) return true;
    if (!type.pool) return false;
    return type.pool->capacity() == 0 || static_cast<double>(due) > type.pool->starts_per_s() * lookahead_s_;
  }

  // How many jobs each limited type keeps.
  std::size_t jobs_per_type(std::size_t limited_types) const {
    return std::min(max_per_type_, quarter_ / std::max<std::size_t>(1, limited_types));
  }

 private:
  const std::size_t quarter_, max_per_type_;
  const double lookahead_s_;
};

}  // namespace tocsin
