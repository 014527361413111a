#include "broker/peer.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "support/process.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class BrokerPeer : public testing::Test {
 protected:
  // Notes where it would connect to; fails but for `good`.
  Status connect(const std::string& host, const GuardPtr& guard, const std::string& good = "") {
    tried.clear();
    return Dialer().dial({host, 5672, guard}, 4s, [&](const std::string& address, std::chrono::milliseconds timeout) {
      EXPECT_GT(timeout, 0ms);
      tried.push_back(address);
      return address == good ? Status(Unit{}) : Status(Error{ErrorCode::unavailable, "nobody is there", {}});
    });
  }
  static GuardPtr guard(const std::vector<std::string>& ranges = {}) {
    return std::make_shared<const AddressGuard>(*AddressGuard::allowing(ranges, false));
  }

  std::vector<std::string> tried;
};

TEST_F(BrokerPeer, AnAddressIsConnectedToAsItIs) {
  EXPECT_TRUE(connect("127.0.0.1", nullptr, "127.0.0.1"));
  EXPECT_TRUE(connect("::1", nullptr, "::1"));
  EXPECT_EQ(connect("127.0.0.1", nullptr).error().message, "nobody is there");
}

TEST_F(BrokerPeer, RefusesForbiddenAddressesInEverySpelling) {
  for (const char* host : {"127.0.0.1", "::1", "2130706433", "0x7f.1", "::ffff:127.0.0.1", "localhost", "10.0.0.1"}) {
    const Status done = connect(host, guard());
    ASSERT_FALSE(done.ok()) << host;
    EXPECT_NE(done.error().message.find("--allow-webhook"), std::string::npos) << done.error().message;
    EXPECT_TRUE(tried.empty()) << host;
  }
  EXPECT_TRUE(connect("8.8.8.8", guard(), "8.8.8.8"));
  EXPECT_TRUE(connect("10.0.0.1", guard({"10.0.0.0/8"}), "10.0.0.1"));
}

TEST_F(BrokerPeer, ANameIsConnectedToByItsAddresses) {
  EXPECT_FALSE(connect("localhost", guard({"127.0.0.0/8"})));
  EXPECT_EQ(tried, std::vector<std::string>{"127.0.0.1"}) << "as what was judged, and no address besides";
}

TEST_F(BrokerPeer, ANameThatDoesNotResolveIsReported) {
  const Status done = connect(std::string(70, 'a'), guard());  // no label is that long
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("resolving the name"), std::string::npos) << done.error().message;
}

// Keeps every question to itself until it is told the answer.
class SlowResolver final : public Resolver {
 public:
  void resolve(const std::string&, Done done) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(done));
  }
  std::size_t asked() {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  void answer(const std::string& address) {
    const std::lock_guard lock(mutex_);
    for (const Done& done : std::exchange(waiting_, {})) done({}, {boost::asio::ip::make_address(address)});
  }

 private:
  std::mutex mutex_;
  std::vector<Done> waiting_;
};

class SlowPeer : public testing::Test {
 protected:
  Status dial(Dialer& dialer, std::chrono::milliseconds timeout) {
    return dialer.dial({"broker.example", 5672, {}}, timeout, [&](const std::string& address, auto) {
      tried.push_back(address);
      return Status(Unit{});
    });
  }

  std::vector<std::string> tried;
  const std::shared_ptr<SlowResolver> resolver = std::make_shared<SlowResolver>();
  const std::shared_ptr<PeerNames> names = std::make_shared<PeerNames>(resolver);
};

TEST_F(SlowPeer, AnUnansweredLookupDoesNotDelayAStop) {
  Dialer dialer(names);
  std::thread stop([&] {
    EXPECT_TRUE(eventually([&] { return resolver->asked() == 1; }));
    dialer.interrupt();
  });
  EXPECT_EQ(dial(dialer, 1h).error().message, "resolving the name: interrupted");
  stop.join();
  EXPECT_FALSE(dialer.interruption());
  EXPECT_FALSE(dial(dialer, 1h)) << "for good";
  resolver->answer("127.0.0.1");
  EXPECT_TRUE(tried.empty());
}

TEST_F(SlowPeer, ALookupHasATimeoutAndIsMadeOnce) {
  for (int i = 0; i < 3; ++i) {
    Dialer dialer(names);
    EXPECT_EQ(dial(dialer, 1ms).error().message, "resolving the name: no answer in time");
  }
  EXPECT_EQ(resolver->asked(), 1U);
  resolver->answer("127.0.0.1");
  EXPECT_TRUE(tried.empty()) << "no caller waits for it any more";

  Dialer dialer(names);
  std::thread answer([&] {
    EXPECT_TRUE(eventually([&] { return resolver->asked() == 1; }));
    resolver->answer("127.0.0.2");
  });
  EXPECT_TRUE(dial(dialer, 1h));
  answer.join();
  EXPECT_EQ(tried, std::vector<std::string>{"127.0.0.2"});
}

}  // namespace
}  // namespace tocsin
