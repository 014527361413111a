#include "cluster/shard_owner.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// Answers no proposal of a map, and notes how long each may wait for its answer.
class SilentStore final : public MemberStore {
 public:
  std::vector<Duration> limits;

  void answer_within(Duration limit) override { limit_ = limit; }
  Result<BeatReply> beat(const Beat&) override { return silence(); }
  Result<bool> replace_map(std::int64_t, const std::vector<NodeId>&) override {
    limits.push_back(limit_);
    return silence();
  }
  Status leave(NodeId) override { return silence(); }

 private:
  static Error silence() { return {ErrorCode::in_doubt, "no answer", ""}; }
  Duration limit_ = Duration::max();
};

class NoEvents final : public EventSink {
 public:
  void count(Counter, std::int64_t) override {}
  void started(TypeId, Duration) override {}
  void failed(std::string_view, const Error&) override {}
};

// Proposals are rare, so the connection may have died since the last one; and the shards of a dead node, which the next
// map gives to this node, wait until this one has been answered.
TEST(ShardOwner, WaitsForTheAnswerToAProposalForOneHeartbeat) {
  ClusterConfig config;
  config.id = 1;
  config.shards = 4;
  SilentStore store;
  LatestView view{nullptr};
  NoEvents events;
  ShardOwner owner(config, store, view, events, {[](const std::vector<Shard>&, const ShardMap&) {}, [] {}, [] {}});
  for (int i = 0; i < 2; ++i) {
    auto seen = std::make_shared<ClusterView>();
    SeenMember& self = seen->members.emplace_back();
    self.member.id = 1;
    self.steady_for = 1min;
    self.is_heard = true;
    view.set(seen);
    owner.step(MonoTime(1h));
  }
  EXPECT_EQ(store.limits, (std::vector<Duration>{config.interval(), 2 * config.interval()}));
}

}  // namespace
}  // namespace tocsin
