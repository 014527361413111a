// Nodes that share the limits of one type, on a store in memory and a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "admission/permit_renewer.h"
#include "support/fake_sessions.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {

inline BizType limited(int max_running) {
  BizType type = biz_type(1);
  type.max_running = max_running;
  return type;
}
inline BizType paced(double per_s) {
  BizType type = biz_type(1);
  type.rate_per_s = per_s;
  return type;
}

class PermitsTest : public ::testing::Test {
 protected:
  struct OneNode final : Clock, FaultPoint {
    OneNode(PermitsTest& owner, NodeId id)
        : test(owner), store(owner.database, this, this), renewer({id}, flow, store, events, [this](TypeId) {
            return Waiting{waiting, 0};
          }) {
      renewer.set_waker(&waker);
      renewer.set_catalog(test.catalog());
    }
    MonoTime now() const override { return test.now; }
    bool is_hit(const FakeCall& call) const { return faulty_verb.empty() || call.verb == faulty_verb; }
    Effect before(const FakeCall& call) override {
      if (!is_hit(call)) return Effect::happens;
      return is_cut_off ? Effect::unavailable : is_late ? Effect::late : Effect::happens;
    }
    void working(const FakeCall&) override {}
    bool after(const FakeCall& call) override { return !loses_answers || !is_hit(call); }
    void keep(std::function<void()> effect) override { late = std::move(effect); }
    std::size_t take(std::size_t n) { return flow.take(test.type, n, Pace::fresh, test.now).n; }
    std::size_t used() { return flow.used(test.type.type_id); }

    struct : Waker {
      void wake() override { ++n; }
      int n = 0;
    } waker;
    PermitsTest& test;
    std::size_t waiting = 0;
    std::string_view faulty_verb;  // that is hit; empty: all are
    bool is_cut_off = false, is_late = false, loses_answers = false;
    std::function<void()> late;
    EventLog events;
    FlowControl flow;
    FakePermitStore store;
    PermitRenewer renewer;
    MonoTime next{};
  };

  OneNode& node(NodeId id) {
    auto& found = nodes[id];
    if (!found) found = std::make_unique<OneNode>(*this, id);
    return *found;
  }
  std::shared_ptr<const TypeCatalog> catalog() { return std::make_shared<const TypeCatalog>(std::vector{type}); }
  void pass(Duration time) {
    for (const MonoTime end = now + time; now < end; now += 50ms)
      for (auto& [id, each] : nodes)
        if (now >= each->next) each->next = each->renewer.step(now);
  }
  std::size_t running() {
    std::size_t n = 0;
    for (auto& [id, each] : nodes) n += each->used();
    return n;
  }

  BizType type = limited(6);
  MonoTime now{1h};
  FakeDatabase database{[this] { return kStart + now.time_since_epoch(); }, 1};
  std::map<NodeId, std::unique_ptr<OneNode>> nodes;

  void SetUp() override {
    database.permits.total_of = [this](TypeId, Limit limit) { return permits_of(type, limit); };
  }
};

}  // namespace tocsin
