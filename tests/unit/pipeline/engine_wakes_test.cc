// Who is woken when an engine hears of its cluster and its types: an idle node sleeps.
#include "pipeline/engine.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

struct WakeCounter final : Waker {
  void wake() override { ++wakes; }
  int wakes = 0;
};

class EngineWakes : public testing::Test {
 protected:
  EngineWakes() {
    std::vector<Waker*> pointers;
    for (WakeCounter& each : wakers) pointers.push_back(&each);
    engine.set_wakers(pointers);
    engine.set_catalog(catalog_with(100));
    take_wakes();
  }
  static std::shared_ptr<const TypeCatalog> catalog_with(int max_attempts) {
    BizType type = biz_type(1);
    type.max_attempts = max_attempts;
    return std::make_shared<const TypeCatalog>(std::vector{type});
  }
  // By stage, since the last time.
  std::vector<int> take_wakes() {
    std::vector<int> wakes;
    for (WakeCounter& each : wakers) wakes.push_back(std::exchange(each.wakes, 0));
    return wakes;
  }
  static constexpr std::size_t kScanner = 0, kTimekeeper = 1, kClaimer = 3;

  ScriptedStore store;
  EventLog events;
  Engine engine{EngineConfig{}, {0}, {store, {&store}, store, store}, [](const BizType&) { return nullptr; },
                events,         1};
  std::vector<WakeCounter> wakers{7};
  const std::vector<int> none = std::vector<int>(7, 0), all = std::vector<int>(7, 1);
};

TEST_F(EngineWakes, ARenewedLeaseWakesStoppedStages) {
  engine.trust_until(MonoTime(1s));
  EXPECT_EQ(take_wakes(), none);
  EXPECT_EQ(engine.stages()[kClaimer]->step(MonoTime(2s)), kWhenWoken);
  engine.trust_until(MonoTime(4s));
  EXPECT_EQ(take_wakes(), all);
  engine.trust_until(MonoTime(5s));
  EXPECT_EQ(take_wakes(), none);
}

TEST_F(EngineWakes, WithJobsInMemoryEveryExtensionWakesAllStages) {
  ASSERT_TRUE(engine.hint({make_job_id(1, 0), 1, kStart}));
  take_wakes();
  engine.trust_until(MonoTime(1s));
  EXPECT_EQ(take_wakes(), all);
  engine.set_catalog(catalog_with(100));
  EXPECT_EQ(take_wakes(), all);
}

TEST_F(EngineWakes, TypesWakeWhenTheyChange) {
  engine.set_catalog(catalog_with(100));
  EXPECT_EQ(take_wakes(), none);
  engine.set_catalog(catalog_with(99));
  EXPECT_EQ(take_wakes(), all);
}

TEST_F(EngineWakes, AChangeOfCapacityWakesClaimersOnly) {
  WakeCounter permit_renewer;
  engine.shared().flow->begin_sharing(&permit_renewer);
  engine.shared().flow->notify_capacity();
  std::vector<int> claimers = none;
  claimers[kClaimer] = 1;
  EXPECT_EQ(take_wakes(), claimers);
  EXPECT_EQ(permit_renewer.wakes, 0) << "no permits are asked for";
}

// The timekeeper sleeps until the next job is due by the estimate that it had.
TEST_F(EngineWakes, AClockSetForwardWakesTheTimekeeper) {
  const auto scan = [&](Duration local, Duration database) {
    ScanReply reply;
    reply.asked = reply.answered = MonoTime(local);
    reply.db_now = kStart + database;
    engine.note_time(reply);
  };
  std::vector<int> timekeeper = none;
  timekeeper[kTimekeeper] = 1;
  scan(0s, 0s);
  scan(1s, 1s);
  EXPECT_EQ(take_wakes(), none);
  scan(2s, 3s);
  EXPECT_EQ(take_wakes(), timekeeper);

  const JobId first = make_job_id(1, 0), second = make_job_id(2, 0);
  ASSERT_TRUE(engine.hint({first, 1, kStart + 4s}));
  ASSERT_TRUE(engine.hint({second, 1, kStart + 4500ms}));
  MonoTime now(3s);
  const auto step = [&](std::size_t stage) { return engine.stages()[stage]->step(now); };
  now = step(kTimekeeper);
  const MonoTime asleep_until = step(kTimekeeper);
  store.on_claim = [&](auto jobs, auto, auto&) {
    EXPECT_EQ(jobs.size(), 1U);
    ClaimedJob won;
    won.job.job_id = first;
    won.job.type_id = 1;
    won.job.gmt_modified = kStart + 4s + 800ms;
    return std::vector{won};
  };
  step(kClaimer);
  take_wakes();
  now += 300us;
  step(kClaimer);
  EXPECT_EQ(take_wakes()[kTimekeeper], 1);
  EXPECT_GT(asleep_until - now, 400ms);
  step(kTimekeeper);
  EXPECT_EQ(engine.shared().due.size(), 1U) << "the second one";
}

TEST_F(EngineWakes, AJoiningNodeOrLostNotificationsStartAScan) {
  engine.set_sole_member(true);
  engine.set_listening(true);
  EXPECT_EQ(take_wakes(), none);
  engine.set_sole_member(false);
  EXPECT_EQ(take_wakes()[kScanner], 1);
  engine.set_listening(false);
  EXPECT_EQ(take_wakes()[kScanner], 1);
}

}  // namespace
}  // namespace tocsin
