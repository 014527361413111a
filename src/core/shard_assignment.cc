#include "core/shard_assignment.h"

#include <algorithm>
#include <map>

namespace tocsin {
namespace {

// A peer and its shards; their order decides which one moves.
struct Holding {
  const Peer* peer = nullptr;
  std::vector<std::size_t> shards;

  bool reaches(DatabaseId database_id) const {
    const auto trouble = peer->troubles.find(database_id);
    return trouble == peer->troubles.end() || trouble->second != Reach::out_of_reach;
  }
  bool may_get(DatabaseId database_id) const { return !peer->troubles.contains(database_id); }
};

using Holdings = std::vector<Holding*>;

bool has_fewer(const Holding* a, const Holding* b) { return a->shards.size() < b->shards.size(); }

class Assignment {
 public:
  Assignment(std::vector<NodeId> owners, const std::vector<Peer>& peers, const std::vector<DatabaseId>& database_ids)
      : owners_(std::move(owners)), map_{0, {}, database_ids} {
    for (const Peer& peer : peers) {
      Holding& holding = holdings_[peer.id];
      holding.peer = &peer;
    }
    for (auto& [id, holding] : holdings_) {
      if (holding.peer->standing != Standing::keeps) gaining_.push_back(&holding);
      if (holding.peer->standing == Standing::shares) sharing_.push_back(&holding);
    }
  }

  std::vector<NodeId> run() {
    if (gaining_.empty()) return owners_;
    for (const std::size_t shard : take_orphans()) {
      const Holdings some = takers(shard);
      give(shard, **std::ranges::min_element(some, has_fewer));
    }
    while (balance_one()) {
    }
    return std::move(owners_);
  }

 private:
  DatabaseId database_of(std::size_t shard) const { return map_.database_of(static_cast<Shard>(shard)); }

  void give(std::size_t shard, Holding& to) {
    owners_[shard] = to.peer->id;
    to.shards.push_back(shard);
  }

  // The peers that may get a shard of this database; empty if none reaches it steadily.
  const Holdings& reaching(DatabaseId database_id) {
    auto [known, is_new] = reaching_.try_emplace(database_id);
    if (is_new)
      std::ranges::copy_if(gaining_, std::back_inserter(known->second),
                           [&](auto* h) { return h->may_get(database_id); });
    return known->second;
  }
  // The peers that may get this shard, never empty: the peers that reach its database steadily; without such peers, the
  // ones that may reach it soon; without these, all.
  Holdings takers(std::size_t shard) {
    const DatabaseId database_id = database_of(shard);
    if (const Holdings& steady = reaching(database_id); !steady.empty()) return steady;
    Holdings some;
    std::ranges::copy_if(gaining_, std::back_inserter(some), [&](auto* h) { return h->reaches(database_id); });
    return some.empty() ? gaining_ : some;
  }

  // In the order of shards: shards without an owner, and shards that their owner cannot scan while others can.
  std::vector<std::size_t> take_orphans() {
    std::vector<std::size_t> orphans;
    for (std::size_t shard = 0; shard < owners_.size(); ++shard) {
      const auto holder = holdings_.find(owners_[shard]);
      const bool is_kept = holder != holdings_.end() &&
                           (holder->second.reaches(database_of(shard)) || reaching(database_of(shard)).empty());
      (is_kept ? holder->second.shards : orphans).push_back(shard);
    }
    return orphans;
  }

  bool balance_one() {
    if (sharing_.size() < 2) return false;
    const auto [least, most] = std::ranges::minmax_element(sharing_, has_fewer);
    if ((*most)->shards.size() - (*least)->shards.size() <= 1) return false;
    if (move_one(**most, **least)) return true;
    // The emptiest peer reaches none of the fullest one's databases: tries the other pairs, the fullest first.
    Holdings by_size = sharing_;
    std::ranges::stable_sort(by_size, has_fewer);
    for (auto from = by_size.rbegin(); from != by_size.rend(); ++from)
      for (Holding* const to : by_size) {
        if ((*from)->shards.size() < to->shards.size() + 2) break;
        if (move_one(**from, *to)) return true;
      }
    return false;
  }

  // Moves the last shard that `to` may get.
  bool move_one(Holding& from, Holding& to) {
    const auto last = std::find_if(from.shards.rbegin(), from.shards.rend(),
                                   [&](std::size_t shard) { return to.may_get(database_of(shard)); });
    if (last == from.shards.rend()) return false;
    const std::size_t shard = *last;
    from.shards.erase(std::next(last).base());
    give(shard, to);
    return true;
  }

  std::vector<NodeId> owners_;
  const ShardMap map_;
  std::map<NodeId, Holding> holdings_;  // by id, which decides between equals
  Holdings gaining_, sharing_;
  std::map<DatabaseId, Holdings> reaching_;
};

}  // namespace

std::vector<NodeId> assign_shards(std::vector<NodeId> owners, const std::vector<Peer>& peers,
                                  const std::vector<DatabaseId>& database_ids) {
  return Assignment(std::move(owners), peers, database_ids).run();
}

}  // namespace tocsin
