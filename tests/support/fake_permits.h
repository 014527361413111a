// FakePermits: which node holds how many permits (parts of a type's limits, lent to nodes), in memory. Part of
// FakeDatabase; its methods are the calls of PermitStore (ports/permit_store.h).
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "ports/permit_store.h"

namespace tocsin {

// Thread: owner only.
class FakePermits {
 public:
  std::function<int(TypeId, Limit)> total_of;  // the limit of a type, in permits

  PermitReply renew(const PermitBeat& beat, WallTime now);
  int take_over(NodeId node, std::int64_t number, TypeId type, int n, WallTime now);
  void return_all(NodeId node);

 private:
  struct Row {
    int granted = 0, need = 0, used = 0;
    std::int64_t number = 0;
    WallTime renewed_at{};
    Duration ttl{0}, lease{0};
  };
  using Rows = std::map<NodeId, Row>;

  void renew_one(const PermitBeat& beat, const PermitRequest& request, Rows& rows, int total, WallTime now);

  std::map<std::pair<TypeId, Limit>, Rows> rows_;
};

}  // namespace tocsin
