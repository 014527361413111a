#include "support/fake_permits.h"

#include <algorithm>

namespace tocsin {

void FakePermits::renew_one(const PermitBeat& beat, const PermitRequest& request, Rows& rows, int total, WallTime now) {
  for (auto& [node, row] : rows) row.renewed_at = std::min(row.renewed_at, now);
  std::erase_if(rows, [&](const auto& entry) {
    const Row& row = entry.second;
    return entry.first != beat.node && row.renewed_at + row.ttl + row.lease < now;
  });
  int others = 0;
  for (const auto& [node, row] : rows)
    if (node != beat.node) others += row.granted;
  const auto own = rows.find(beat.node);
  if (own != rows.end() && own->second.number >= beat.number) return;
  const int base = own == rows.end() ? 0 : std::min(request.held, own->second.granted);
  const Duration lease_left = own == rows.end() ? Duration(0) : own->second.lease - (now - own->second.renewed_at);
  rows[beat.node] = {base + std::max(0, std::min(request.wanted - base, total - others - base)),
                     request.need,
                     request.used,
                     beat.number,
                     now,
                     beat.ttl,
                     std::max(request.lease, lease_left)};
}

PermitReply FakePermits::renew(const PermitBeat& beat, WallTime now) {
  PermitReply reply;
  reply.db_now = now;
  for (const PermitRequest& request : beat.requests) {
    Rows& rows = rows_[{request.type_id, request.limit}];
    auto& item = reply.items.emplace_back();
    item.total = total_of(request.type_id, request.limit);
    renew_one(beat, request, rows, item.total, now);
    for (const auto& [node, row] : rows)
      item.shares.push_back({node, row.granted, row.need, row.used, row.renewed_at + row.ttl < now});
  }
  return reply;
}

int FakePermits::take_over(NodeId node, std::int64_t number, TypeId type, int n, WallTime now) {
  Rows& rows = rows_[{type, Limit::running}];
  const auto own = rows.find(node);
  if (own == rows.end() || own->second.number != number) return 0;
  int moved = 0;
  for (auto& [other, row] : rows) {
    if (other == node || row.renewed_at + row.ttl >= now) continue;
    const int some = std::min(row.granted, n - moved);
    row.granted -= some;
    moved += some;
  }
  own->second.granted += moved;
  return moved;
}

void FakePermits::return_all(NodeId node) {
  for (auto& [key, rows] : rows_) rows.erase(node);
}

}  // namespace tocsin
