#include "multidb/outbox_relay.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <string>

#include "support/fake_outbox.h"
#include "support/manual_clock.h"
#include "support/no_faults.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// A session that notes the time limit of each call, by the name of the call. It fails calls of the name in `silent`.
class WatchedSession final : public RelaySession, public NoFaults {
 public:
  WatchedSession(FakeOutbox& outbox, const Clock& clock, std::map<std::string, Duration>& limits,
                 const std::string& silent)
      : inner_(fake_relay_end(outbox, clock, *this)), limits_(limits), silent_(silent) {}

  void answer_within(Duration limit) override { limit_ = limit; }
  OutboxStore& outbox() override { return inner_->outbox(); }
  IntakeStore& intake() override { return inner_->intake(); }
  TypeStore& types() override { return inner_->types(); }
  Effect before(const FakeCall& call) override {
    limits_[std::string(call.verb)] = limit_;
    return call.verb == silent_ ? Effect::unavailable : Effect::happens;
  }

 private:
  const std::unique_ptr<RelaySession> inner_;
  std::map<std::string, Duration>& limits_;
  const std::string& silent_;
  Duration limit_ = Duration::max();
};

// One relay, two databases, stepped by hand. All shards are its own; they live in the second database.
class OutboxRelayTest : public testing::Test {
 protected:
  OutboxRelayTest() {
    ShardMap map{1, std::vector<NodeId>(4, 1), std::vector<DatabaseId>(4, 1)};
    relay.set_shards({0, 1, 2, 3}, map);
  }
  void step() {
    relay.step_outbox(0);
    relay.step_intake(1);
    clock.advance(2s);
    now += 2s;
  }
  RelayDatabase database(DatabaseId database_id, FakeOutbox& outbox) {
    return {database_id, "d",
            [this, &outbox] { return std::make_unique<WatchedSession>(outbox, clock, limits, silent); }};
  }
  RelayHooks hooks() {
    RelayHooks hooks;
    hooks.time_at_least = [this](DatabaseId) { return std::optional(now); };
    hooks.make_types_known = [](DatabaseId, TypeStore&) -> Status { return Unit{}; };
    hooks.hint = [](const Candidate&) {};
    hooks.moved = [] {};
    return hooks;
  }
  void create_entry() { a.create("order", 1h, {}, now); }

  WallTime now{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  ManualClock clock;
  std::string silent;  // calls of this name get no answer
  std::map<std::string, Duration> limits;
  FakeDatabase here{[this] { return now; }, 4}, there{[this] { return now; }, 4};
  FakeOutbox a{0, here, {}}, b{1, there, {0, 1, 2, 3}};
  Metrics metrics{clock};
  OutboxRelay relay{{database(0, a), database(1, b)}, clock, metrics, hooks()};
};

TEST_F(OutboxRelayTest, RelaysAnEntry) {
  create_entry();
  step();
  step();
  EXPECT_EQ(a.waiting(), 0U);
}

// A connection may have died while nothing was relayed, and tell nobody. Its entries wait for the limit.
TEST_F(OutboxRelayTest, WaitsForAnAnswerForTwoSeconds) {
  create_entry();
  step();
  step();
  for (const auto& call : {"outbox_is_empty", "outbox_claim", "take_over", "outbox_settle"})
    EXPECT_EQ(limits.at(call), 2s) << call;
  EXPECT_EQ(limits.at("outbox_size"), Duration::max()) << "it may have many entries to count";
}

TEST_F(OutboxRelayTest, WaitsLongerAfterEachCallWithoutAnAnswer) {
  create_entry();
  for (const auto& call : {"take_over", "outbox_is_empty"}) {
    silent = call;
    step();
    step();
    step();
    EXPECT_EQ(limits.at(call), 8s) << call;
  }
  silent = "";
  step();
  EXPECT_EQ(limits.at("outbox_is_empty"), 16s);
  step();
  EXPECT_EQ(limits.at("outbox_is_empty"), 2s);
}

}  // namespace
}  // namespace tocsin
