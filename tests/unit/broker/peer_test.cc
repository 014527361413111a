#include "broker/peer.h"

#include <gtest/gtest.h>

#include <vector>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class Peer : public testing::Test {
 protected:
  // Notes where it would connect to; fails but for `good`.
  Status connect(const std::string& host, const GuardPtr& guard, const std::string& good = "") {
    tried.clear();
    return connect_to({host, 5672, guard}, 4s, [&](const std::string& address, std::chrono::milliseconds timeout) {
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

TEST_F(Peer, AnAddressIsConnectedToAsItIs) {
  EXPECT_TRUE(connect("127.0.0.1", nullptr, "127.0.0.1"));
  EXPECT_TRUE(connect("::1", nullptr, "::1"));
  EXPECT_EQ(connect("127.0.0.1", nullptr).error().message, "nobody is there");
}

TEST_F(Peer, WhatTheGuardRefusesIsNotConnectedToHoweverItIsSpelt) {
  for (const char* host : {"127.0.0.1", "::1", "2130706433", "0x7f.1", "::ffff:127.0.0.1", "localhost", "10.0.0.1"}) {
    const Status done = connect(host, guard());
    ASSERT_FALSE(done.ok()) << host;
    EXPECT_NE(done.error().message.find("--allow-webhook"), std::string::npos) << done.error().message;
    EXPECT_TRUE(tried.empty()) << host;
  }
  EXPECT_TRUE(connect("8.8.8.8", guard(), "8.8.8.8"));
  EXPECT_TRUE(connect("10.0.0.1", guard({"10.0.0.0/8"}), "10.0.0.1"));
}

TEST_F(Peer, ANameIsConnectedToByItsAddresses) {
  EXPECT_FALSE(connect("localhost", guard({"127.0.0.0/8"})));
  EXPECT_EQ(tried, std::vector<std::string>{"127.0.0.1"}) << "as what was judged, and no address besides";
}

TEST_F(Peer, ANameThatDoesNotResolveIsTheReason) {
  const Status done = connect(std::string(70, 'a'), guard());  // no label is that long
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("resolving the name"), std::string::npos) << done.error().message;
}

}  // namespace
}  // namespace tocsin
