#include "scaling/scaled_node.h"

namespace tocsin {

class ScaledNode::Loop final : public Waker {
 public:
  Loop(Scheduler& scheduler, Stage& stage) : scheduler_(scheduler), stage_(stage) {
    fiber_ = scheduler_.spawn([this] { run(); });
  }
  ~Loop() override { scheduler_.kill(fiber_); }

  void wake() override {
    if (is_woken_) return;
    is_woken_ = true;
    if (is_idle_) scheduler_.wake(fiber_);
  }

 private:
  void run() {
    while (true) {
      is_woken_ = false;
      const MonoTime next = stage_.step(scheduler_.now());
      if (next <= scheduler_.now() || is_woken_) {
        scheduler_.sleep(std::chrono::microseconds(10));  // a step costs time
        continue;
      }
      is_idle_ = true;
      scheduler_.wait_until(next);
      is_idle_ = false;
    }
  }

  Scheduler& scheduler_;
  Stage& stage_;
  Scheduler::FiberId fiber_ = 0;
  bool is_woken_ = false;
  bool is_idle_ = false;
};

// A session with the membership tables.
class ScaledNode::Members final : public MemberStore {
 public:
  explicit Members(ScaledWorld& world) : world_(world) {}

  Result<BeatReply> beat(const Beat& beat) override {
    const MonoTime asked = world_.scheduler.now();
    ++world_.statements.beats;
    BeatReply reply = world_.members.beat(beat, WallTime(asked.time_since_epoch()));
    world_.statements.member_rows += std::ssize(reply.members);
    world_.scheduler.sleep(std::chrono::microseconds(200 + 5 * reply.members.size()));
    reply.asked = asked;
    reply.answered = world_.scheduler.now();
    return reply;
  }
  Result<bool> replace_map(std::int64_t known, const std::vector<NodeId>& owners) override {
    world_.scheduler.sleep(std::chrono::microseconds(500));
    const bool is_replaced = world_.members.replace_map(known, owners);
    if (is_replaced) ++world_.statements.map_writes;
    return is_replaced;
  }
  Status leave(NodeId id) override {
    world_.members.leave(id);
    return Unit{};
  }

 private:
  ScaledWorld& world_;
};

ScaledNode::ScaledNode(ScaledWorld& world, NodeId id)
    : world_(world),
      id_(id),
      heartbeat_store_(std::make_unique<Members>(world)),
      owner_store_(std::make_unique<Members>(world)) {
  constexpr int kClaimers = 3;
  for (int i = 0; i < 3 + kClaimers; ++i)
    stores_.push_back(std::make_unique<PlainStore>(world.table, world.scheduler, world.statements, world.on_fired));
  EngineStores stores{*stores_[0], {}, *stores_[1], *stores_[2]};
  for (int i = 0; i < kClaimers; ++i) stores.claimers.push_back(stores_[static_cast<std::size_t>(3 + i)].get());
  EngineConfig config;
  config.node = std::to_string(id);
  engine_ = std::make_unique<Engine>(
      config, std::vector<Shard>{}, stores, [](const BizType&) { return nullptr; }, *this,
      static_cast<std::uint64_t>(id));
  ClusterConfig cluster;
  cluster.id = id;
  cluster.name = config.node;
  cluster.shards = world.shards;
  heartbeat_ = std::make_unique<Heartbeat>(
      cluster, *heartbeat_store_, view_, *this,
      Heartbeat::Hooks{[this](MonoTime now) {
                         return std::vector{ScannedDatabase{0, engine_->shared().scans.age(now)}};
                       },
                       [this](MonoTime until) { engine_->trust_until(until); }, [this] { return owner_->applied(); },
                       [this](bool is_sole_member) { engine_->set_sole_member(is_sole_member); }});
  owner_ = std::make_unique<ShardOwner>(
      cluster, *owner_store_, view_, *this,
      ShardOwner::Hooks{[this](const std::vector<Shard>& shards, const ShardMap&) { engine_->set_shards(shards); },
                        [this] { heartbeat_->note_applied(); }, [this] { heartbeat_->request(); }});
  std::vector<Waker*> wakers;
  for (Stage* stage : engine_->stages())
    wakers.push_back(loops_.emplace_back(std::make_unique<Loop>(world.scheduler, *stage)).get());
  engine_->set_wakers(wakers);
  engine_->set_catalog(world.catalog);
  Waker* const heartbeat = loops_.emplace_back(std::make_unique<Loop>(world.scheduler, *heartbeat_)).get();
  Waker* const owner = loops_.emplace_back(std::make_unique<Loop>(world.scheduler, *owner_)).get();
  heartbeat_->set_wakers(heartbeat, owner);
}

ScaledNode::~ScaledNode() { loops_.clear(); }

void ScaledNode::crash(bool ends_session) {
  loops_.clear();
  if (ends_session) world_.members.end_session(id_);
}

void ScaledNode::leave() {
  heartbeat_->drain();
  engine_->begin_drain();
}

void ScaledNode::members_changed() {
  if (!loops_.empty()) heartbeat_->request();
}

}  // namespace tocsin
