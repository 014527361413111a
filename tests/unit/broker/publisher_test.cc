#include "broker/publisher.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <set>

#include "base/system_clock.h"
#include "support/process.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// A broker in memory: says what the test tells it to.
// Thread: any.
struct FakeBroker {
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, std::string>> sent;  // ticket, id; of the current connection
  std::vector<Verdict> verdicts;                            // to be told
  std::set<std::string> seen;                               // ids, of all connections
  bool is_down = false, is_cut = false, confirms_at_once = true;
  int connects = 0;
  std::chrono::milliseconds time_to_connect{0};
  std::string blocked_because;
  std::string trouble;

  std::size_t waiting() {
    std::lock_guard lock(mutex);
    return sent.size();
  }
};

class FakeLink final : public Link {
 public:
  explicit FakeLink(FakeBroker& broker) : broker_(broker) {}

  Status open(int wake, std::chrono::milliseconds timeout) override {
    std::lock_guard lock(broker_.mutex);
    wake_ = wake;
    ++broker_.connects;
    broker_.time_to_connect = timeout;
    broker_.sent.clear();
    broker_.is_cut = false;
    return broker_.is_down ? Status(Error{ErrorCode::unavailable, "nobody is there", {}}) : Status(Unit{});
  }
  std::string blocked_because() const override {
    std::lock_guard lock(broker_.mutex);
    return broker_.blocked_because;
  }
  std::string trouble() const override {
    std::lock_guard lock(broker_.mutex);
    return broker_.trouble;
  }
  Status send(std::uint64_t ticket, const BrokerMessage& message) override {
    std::lock_guard lock(broker_.mutex);
    broker_.sent.emplace_back(ticket, message.id);
    broker_.seen.insert(message.id);
    if (broker_.confirms_at_once) broker_.verdicts.push_back({ticket, ""});
    return Unit{};
  }
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override {
    {
      std::lock_guard lock(broker_.mutex);
      verdicts.swap(broker_.verdicts);
      if (broker_.is_cut) return Error{ErrorCode::unavailable, "cut off", {}};
    }
    if (!verdicts.empty()) return Unit{};
    pollfd fd{wake_, POLLIN, 0};
    ::poll(&fd, 1, static_cast<int>(std::min<Duration>(timeout, 5ms) / 1ms));
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
    return Unit{};
  }
  void interrupt() override {}

 private:
  FakeBroker& broker_;
  int wake_ = -1;
};

class PublisherTest : public testing::Test {
 protected:
  void publish(const std::string& id, Duration lease = 60s, Duration start_in = 60s) {
    BrokerMessage message;
    message.id = id;
    const MonoTime now = clock_.now();
    publisher_.publish(std::move(message), now + lease, now + start_in, [this, id](Outcome outcome) {
      std::lock_guard lock(mutex_);
      outcomes_.emplace(id, std::move(outcome));
    });
  }
  bool has(const std::string& id, Outcome::Kind kind, const std::string& words = "") {
    return eventually([&] {
      std::lock_guard lock(mutex_);
      const auto found = outcomes_.find(id);
      return found != outcomes_.end() && found->second.kind == kind &&
             found->second.message.find(words) != std::string::npos;
    });
  }
  bool is_open(const std::string& id) {
    std::lock_guard lock(mutex_);
    return !outcomes_.contains(id);
  }

  SystemClock clock_;
  FakeBroker broker_;
  std::mutex mutex_;
  std::map<std::string, Outcome> outcomes_;
  std::shared_ptr<PublisherCounts> counts_ = std::make_shared<PublisherCounts>();
  Publisher publisher_{"fake://broker", [this] { return std::make_unique<FakeLink>(broker_); }, clock_, counts_};
};

TEST_F(PublisherTest, IsDoneOnlyWhenConfirmed) {
  broker_.confirms_at_once = false;
  publish("a");
  publish("b");
  ASSERT_TRUE(eventually([&] { return broker_.waiting() == 2; }));
  EXPECT_TRUE(is_open("a"));
  {
    std::lock_guard lock(broker_.mutex);
    broker_.verdicts = {{broker_.sent[1].first, "no room"}};
  }
  EXPECT_TRUE(has("b", Outcome::Kind::retry, "fake://broker: no room"));
  EXPECT_TRUE(is_open("a"));
  {
    std::lock_guard lock(broker_.mutex);
    broker_.verdicts = {{broker_.sent[0].first, ""}, {4711, ""}};
  }
  EXPECT_TRUE(has("a", Outcome::Kind::done));
  EXPECT_EQ(counts_->confirmed, 1);
  EXPECT_EQ(counts_->refused, 1);
}

TEST_F(PublisherTest, AMessageNotConfirmedInItsLeaseIsRetriedWithTheReason) {
  broker_.confirms_at_once = false;
  publish("a", 50ms);
  EXPECT_TRUE(has("a", Outcome::Kind::retry, "not confirmed in time"));
  {
    std::lock_guard lock(broker_.mutex);
    broker_.trouble = "one of its servers may not be called";
  }
  publish("b", 50ms);
  EXPECT_TRUE(has("b", Outcome::Kind::retry, "not confirmed in time: one of its servers may not be called"));
}

TEST_F(PublisherTest, MessagesNotSentInTimeHaveNotStarted) {
  publish("a", 60s, -1ms);
  EXPECT_TRUE(has("a", Outcome::Kind::not_started));
  EXPECT_TRUE(broker_.seen.empty());
}

TEST_F(PublisherTest, AConnectionThatCannotBeMadeIsReported) {
  broker_.is_down = true;
  publish("a");
  EXPECT_TRUE(has("a", Outcome::Kind::retry, "nobody is there"));
  publish("b");
  EXPECT_TRUE(has("b", Outcome::Kind::retry, "nobody is there"));
  {
    std::lock_guard lock(broker_.mutex);
    broker_.is_down = false;
  }
  int n = 0;
  EXPECT_TRUE(eventually([&] {
    publish("c" + std::to_string(++n));
    std::lock_guard lock(mutex_);
    return std::ranges::any_of(outcomes_, [](const auto& each) { return each.second.kind == Outcome::Kind::done; });
  })) << "comes back by itself";
}

TEST_F(PublisherTest, ALostConnectionFailsMessagesInFlightAndIsReopened) {
  broker_.confirms_at_once = false;
  publish("a");
  ASSERT_TRUE(eventually([&] { return broker_.waiting() == 1; }));
  EXPECT_EQ(counts_->connections, 1);
  {
    std::lock_guard lock(broker_.mutex);
    broker_.is_cut = true;
    broker_.confirms_at_once = true;
  }
  EXPECT_TRUE(has("a", Outcome::Kind::retry, "cut off (before it was confirmed)"));
  publish("b");
  EXPECT_TRUE(has("b", Outcome::Kind::done));
  EXPECT_EQ(broker_.connects, 2);
}

TEST_F(PublisherTest, ABrokerThatAcceptsNothingIsReported) {
  broker_.blocked_because = "low on memory";
  publish("a");
  EXPECT_TRUE(has("a", Outcome::Kind::retry, "low on memory"));
  EXPECT_TRUE(broker_.seen.empty());
}

TEST_F(PublisherTest, ASilentBrokerLeavesTimeToWriteTheOutcome) {
  broker_.is_down = true;
  publish("a", 4s);
  EXPECT_TRUE(has("a", Outcome::Kind::retry, "nobody is there"));
  std::lock_guard lock(broker_.mutex);
  EXPECT_GT(broker_.time_to_connect, 0s);
  EXPECT_LE(broker_.time_to_connect, 1800ms);
}

TEST_F(PublisherTest, NoMoreThanTheWindowIsInFlight) {
  broker_.confirms_at_once = false;
  for (std::size_t i = 0; i < Publisher::kMostInFlight + 10; ++i) publish(std::to_string(i));
  ASSERT_TRUE(eventually([&] { return broker_.waiting() == Publisher::kMostInFlight; }));
  {
    std::lock_guard lock(broker_.mutex);
    for (std::size_t i = 0; i < 10; ++i) broker_.verdicts.push_back({broker_.sent[i].first, ""});
  }
  EXPECT_TRUE(eventually([&] { return broker_.waiting() == Publisher::kMostInFlight + 10; }));
}

TEST_F(PublisherTest, AStopEndsMessagesInFlightAndRefusesTheRest) {
  broker_.confirms_at_once = false;
  publish("a");
  ASSERT_TRUE(eventually([&] { return broker_.waiting() == 1; }));
  publisher_.stop(0s);
  EXPECT_TRUE(has("a", Outcome::Kind::retry, "shutting down"));
  publish("b");
  EXPECT_TRUE(has("b", Outcome::Kind::retry, "shutting down"));
  EXPECT_EQ(counts_->connections, 0);
}

TEST_F(PublisherTest, ARetiredPublisherEndsAfterItsMessagesInFlight) {
  broker_.confirms_at_once = false;
  publish("a");
  ASSERT_TRUE(eventually([&] { return broker_.waiting() == 1; }));
  publisher_.retire();
  EXPECT_FALSE(publisher_.has_ended());
  {
    std::lock_guard lock(broker_.mutex);
    broker_.verdicts = {{broker_.sent[0].first, ""}};
  }
  EXPECT_TRUE(has("a", Outcome::Kind::done));
  EXPECT_TRUE(eventually([&] { return publisher_.has_ended(); }));
}

}  // namespace
}  // namespace tocsin
