#include "cluster/shard_owner.h"

namespace tocsin {

MonoTime ShardOwner::step(MonoTime) {
  const auto view = view_.get();
  if (!view || view == applied_.get()) return kWhenWoken;

  std::vector<Shard> owned;
  for (std::size_t shard = 0; shard < view->map.owners.size(); ++shard)
    if (view->map.owners[shard] == config_.id) owned.push_back(static_cast<Shard>(shard));
  const bool is_changed = owned != owned_ || view->map.database_ids != database_ids_;
  if (is_changed) {
    owned_ = std::move(owned);
    database_ids_ = view->map.database_ids;
    hooks_.owned(owned_, view->map);
  }
  applied_.set(view);
  if (is_changed) hooks_.applied();

  std::vector<NodeId> before = view->map.owners;
  before.resize(static_cast<std::size_t>(config_.shards));
  const auto after = assign_shards(before, peers(*view), view->map.database_ids);
  if (after == view->map.owners) return kWhenWoken;
  const auto replaced = store_.replace_map(view->map.version, after);
  // Failed or in doubt: the next heartbeat reads the stored map.
  if (!replaced)
    events_.failed(name(), replaced.error());
  else
    hooks_.proposed();
  return kWhenWoken;
}

std::vector<Peer> ShardOwner::peers(const ClusterView& view) const {
  std::vector<Peer> peers;
  for (const SeenMember& seen : view.members) {
    const auto& [member, silent_for, steady_for, is_heard, troubles] = seen;
    if (member.is_draining || is_dead(seen, config_)) continue;
    const Standing standing = !is_heard || silent_for >= config_.hesitation() ? Standing::keeps
                              : steady_for < config_.timeout                  ? Standing::newcomer
                                                                              : Standing::shares;
    peers.push_back({member.id, standing, troubles});
  }
  return peers;
}

}  // namespace tocsin
