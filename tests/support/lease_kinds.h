// The kinds of lease results, without their other fields, for comparisons in tests.
#pragma once

#include <vector>

#include "ports/client_store.h"

namespace tocsin {

inline std::vector<LeaseReply> kinds_of(const std::vector<LeaseResult>& results) {
  std::vector<LeaseReply> kinds;
  for (const LeaseResult& result : results) kinds.push_back(result.kind);
  return kinds;
}

}  // namespace tocsin
