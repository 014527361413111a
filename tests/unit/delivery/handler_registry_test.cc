#include "delivery/handler_registry.h"

#include <gtest/gtest.h>

#include "delivery/cpp_handler.h"
#include "delivery/plain_kinds.h"
#include "delivery/runnable_types.h"
#include "delivery/webhook.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class FixedClock final : public Clock {
 public:
  MonoTime now() const override { return MonoTime(1000s); }
};

BizType a_type(const std::string& kind, const std::string& settings = "") {
  BizType type;
  type.type_id = 1;
  type.name = "order.unpaid";
  type.handler_kind = kind;
  type.handler_json = R"({"kind":")" + kind + "\"" + settings + "}";
  return type;
}

class Handlers : public testing::Test {
 protected:
  std::string field_at_fault(const BizType& type) const {
    const auto error = registry_.check(type);
    return error ? error->field : "";
  }

  Handlers() {
    registry_.add(std::make_unique<NoopKind>());
    registry_.add(std::make_unique<PullKind>());
    registry_.add(std::make_unique<CppKind>(functions_, 1, 1, clock_));
    registry_.add(std::make_unique<WebhookKind>(
        WebhookOptions{"1.2.3", {}}, clock_, [] { return WallTime{}; }, [](const Job&) { return std::string("{}"); }));
  }

  FixedClock clock_;
  CppHandlers functions_;
  HandlerRegistry registry_;
};

TEST_F(Handlers, NamesTheFieldAtFault) {
  EXPECT_EQ(field_at_fault(a_type("noop")), "");
  EXPECT_EQ(field_at_fault(a_type("cpp")), "") << "a node without the function may still register the type";
  EXPECT_EQ(field_at_fault(a_type("webhook", R"(,"url":"http://h/")")), "");
  EXPECT_EQ(field_at_fault(a_type("telegram")), "handler.kind");
  EXPECT_EQ(field_at_fault(a_type("")), "handler.kind");
  EXPECT_EQ(field_at_fault(a_type("noop", R"(,"url":"http://h/")")), "handler.url");
  EXPECT_EQ(field_at_fault(a_type("webhook")), "handler.url");
  EXPECT_NE(registry_.check(a_type("telegram"))->message.find("cpp, noop, pull, webhook"), std::string::npos);
}

TEST_F(Handlers, RunsOnlyTypesWithAHandler) {
  EXPECT_TRUE(registry_.can_run(a_type("noop")));
  EXPECT_FALSE(registry_.can_run(a_type("telegram")));
  EXPECT_FALSE(registry_.can_run(a_type("webhook", R"(,"url":"nonsense")"))) << "a row written past the API";
  EXPECT_FALSE(registry_.can_run(a_type("cpp")));
  functions_.add("order.unpaid", [](const Job&) { return Outcome::done(); });
  EXPECT_TRUE(registry_.can_run(a_type("cpp")));
}

TEST_F(Handlers, NoopIsDoneAtOnce) {
  bool is_done = false;
  registry_.find(a_type("noop"))->start({}, [&](const Outcome& outcome) {
    is_done = outcome.kind == Outcome::Kind::done;
  });
  EXPECT_TRUE(is_done);
}

TEST_F(Handlers, FollowsChangesOfATypeUnderTheSamePointer) {
  Handler* const before = registry_.find(a_type("webhook", R"(,"url":"http://h/")"));
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(registry_.find(a_type("webhook", R"(,"url":"http://h/")")), before);
  EXPECT_EQ(registry_.find(a_type("noop")), before);
  bool is_done = false;
  before->start({}, [&](const Outcome&) { is_done = true; });
  EXPECT_TRUE(is_done);

  EXPECT_FALSE(registry_.can_run(a_type("telegram")));
  Outcome::Kind late = Outcome::Kind::done;
  before->start({}, [&](const Outcome& outcome) { late = outcome.kind; });
  EXPECT_EQ(late, Outcome::Kind::not_started) << "claimed before the change";
  EXPECT_EQ(registry_.find(a_type("noop")), before) << "and back again";
  BizType other = a_type("noop");
  other.type_id = 2;
  EXPECT_NE(registry_.find(other), before);
}

// Its handlers hold something open, as those of brokers do.
class HoldingKind final : public HandlerKind {
 public:
  explicit HoldingKind(int& open) : open_(open) {}
  std::string name() const override { return "holding"; }
  std::optional<Error> check(const BizType&) const override { return {}; }
  std::shared_ptr<Handler> make(const BizType&) override { return std::make_shared<Holding>(open_); }

 private:
  struct Holding final : Handler {
    explicit Holding(int& all) : open(all) {}
    ~Holding() override { open -= has_started; }
    void start(const ClaimedJob&, Finish finish) override {
      open += !std::exchange(has_started, true);
      finish(Outcome::done());
    }
    int& open;
    bool has_started = false;
  };
  int& open_;
};

TEST_F(Handlers, ReleasesHandlersThatNoTypeUses) {
  int open = 0;
  registry_.add(std::make_unique<HoldingKind>(open));
  const auto run = [&](const BizType& type) { registry_.find(type)->start({}, [](const Outcome&) {}); };
  const BizType type = a_type("holding");
  run(type);
  run(type);
  EXPECT_EQ(open, 1);
  run(a_type("holding", R"(,"url":"other")"));
  EXPECT_EQ(open, 1) << "other settings";
  run(a_type("noop"));
  EXPECT_EQ(open, 0) << "another kind";
  run(type);
  EXPECT_FALSE(registry_.can_run(a_type("telegram")));
  EXPECT_EQ(open, 0) << "a kind that cannot run here";
  run(type);
  registry_.forget(type);
  EXPECT_EQ(open, 0) << "removed";
  run(type);
  EXPECT_EQ(open, 1) << "what came in before the removal still runs";
  registry_.forget(type);
  BizType stranger = type;
  stranger.type_id = 77;
  registry_.forget(stranger);
  EXPECT_EQ(open, 0);
}

TEST_F(Handlers, EnginesSeeRemovedTypesForTheJobsThatCameInBefore) {
  RunnableTypes runnable(registry_);
  BizType type = a_type("noop");
  type.is_removed = true;
  const auto registered = std::make_shared<const TypeCatalog>(std::vector{type});
  for (int i = 0; i < 2; ++i) {
    const auto seen = runnable.of(registered);
    ASSERT_NE(seen->find(1), nullptr) << i;
    EXPECT_FALSE(seen->find(1)->is_removed);
  }
}

TEST_F(Handlers, EnginesSeeOnlyWhatCanRunHere) {
  RunnableTypes runnable(registry_);
  BizType cpp = a_type("cpp"), noop = a_type("noop");
  noop.type_id = 2, noop.name = "other";
  const auto registered = std::make_shared<const TypeCatalog>(std::vector{cpp, noop});
  const auto before = runnable.of(registered);
  EXPECT_EQ(before->types.size(), 1U);
  EXPECT_EQ(runnable.of(registered), before) << "nothing has changed";

  noop.paused = true;
  const auto after = runnable.of(
      std::make_shared<const TypeCatalog>(std::vector{registered->by_id.at(1), std::make_shared<const BizType>(noop)}));
  ASSERT_EQ(after->types.size(), 1U);
  EXPECT_TRUE(after->types[0]->paused);
}

}  // namespace
}  // namespace tocsin
