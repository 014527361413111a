// Which seeds a simulation runs: those that the environment asks for, else a number of its own.
//   TOCSIN_SIM_SEEDS=n      how many
//   TOCSIN_SIM_FIRST=n      the first of them (default 1)
//   TOCSIN_SIM_SEED=n       only this one
//   TOCSIN_SIM_TRACE=1      prints all that happens in it
#pragma once

#include <cstdint>
#include <cstdlib>

#include "base/progress.h"

namespace tocsin {

// The number in the variable `name` of the environment; `otherwise` if it is not set.
inline std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 0) : otherwise;
}

inline bool is_trace_wanted() { return number_from("TOCSIN_SIM_TRACE", 0) != 0; }

// Calls `run(seed)` with each seed until it returns false, and shows the progress. Returns how many seeds were
// requested. `otherwise`: that number if the environment does not give one.
template <class Run>
std::uint64_t for_each_seed(const char* what, std::uint64_t otherwise, const Run& run) {
  const std::uint64_t only = number_from("TOCSIN_SIM_SEED", 0);
  const std::uint64_t first = only ? only : number_from("TOCSIN_SIM_FIRST", 1);
  const std::uint64_t n = only ? 1 : number_from("TOCSIN_SIM_SEEDS", otherwise);
  Progress progress(what);
  for (std::uint64_t i = 0; i < n && run(first + i); ++i)
    progress.show(static_cast<std::int64_t>(i + 1), static_cast<std::int64_t>(n));
  return n;
}

}  // namespace tocsin
