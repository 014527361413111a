#include "delivery/address_guard.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

bool allows(const AddressGuard& guard, const char* text) { return guard.allows(boost::asio::ip::make_address(text)); }

AddressGuard allowing(const std::vector<std::string>& ranges, bool allow_loopback = false) {
  auto guard = AddressGuard::allowing(ranges, allow_loopback);
  EXPECT_TRUE(guard.ok());
  return guard.ok() ? *guard : AddressGuard();
}

TEST(AddressGuard, PassesPublicAddresses) {
  for (const char* text : {"1.1.1.1",         "8.8.8.8",         "9.255.255.255",        "11.0.0.0",
                           "100.63.255.255",  "100.128.0.0",     "126.255.255.255",      "128.0.0.0",
                           "169.253.255.255", "169.255.0.0",     "172.15.255.255",       "172.32.0.0",
                           "192.0.1.0",       "192.167.255.255", "192.169.0.0",          "198.17.255.255",
                           "198.20.0.0",      "223.255.255.255", "2606:4700:4700::1111", "2a00::1",
                           "2001:200::1",     "::ffff:8.8.8.8",  "64:ff9b::8.8.8.8"}) {
    EXPECT_TRUE(allows({}, text)) << text;
  }
}

TEST(AddressGuard, RefusesEverythingElse) {
  for (const char* text : {
           "0.0.0.0",
           "0.1.2.3",
           "10.0.0.1",
           "10.255.255.255",
           "100.64.0.1",
           "100.127.255.255",
           "127.0.0.1",
           "127.255.255.254",
           "169.254.169.254",
           "169.254.0.1",
           "172.16.0.1",
           "172.31.255.255",
           "192.0.0.170",
           "192.0.2.1",
           "192.88.99.1",
           "192.168.0.1",
           "198.18.0.1",
           "198.19.255.255",
           "198.51.100.1",
           "203.0.113.1",
           "224.0.0.1",
           "239.255.255.250",
           "240.0.0.1",
           "255.255.255.255",
           "::",                      // unspecified
           "::1",                     // loopback
           "::127.0.0.1",             // IPv4-compatible
           "::8.8.8.8",               //
           "::ffff:127.0.0.1",        // IPv4-mapped
           "::ffff:10.0.0.1",         //
           "::ffff:169.254.169.254",  //
           "::ffff:0.0.0.0",          //
           "::ffff:0:127.0.0.1",      // IPv4-translated
           "64:ff9b::127.0.0.1",      // NAT64
           "64:ff9b::169.254.169.254",
           "64:ff9b:1::1.1.1.1",  // NAT64, local
           "100::1",              // discard
           "2001::1",             // Teredo
           "2001:0:4136:e378:8000:63bf:3fff:fdd2",
           "2001:2::1",
           "2001:10::1",
           "2001:20::1",
           "2001:db8::1",
           "2002:7f00:1::",
           "2002:a9fe:a9fe::1",
           "2002:808:808::1",  // 6to4
           "2a00::5efe:10.0.0.1",
           "2a00::200:5efe:127.0.0.1",  // ISATAP
           "3fff::1",
           "5f00::1",
           "fc00::1",
           "fd00:ec2::254",
           "fe80::1",
           "fe80::1%1",
           "fec0::1",
           "ff02::1",
           "ff0e::1",
           "4000::1",
       }) {
    EXPECT_FALSE(allows({}, text)) << text;
  }
}

TEST(AddressGuard, PassesAddressesOfAnAllowedRange) {
  const AddressGuard guard = allowing({"10.1.0.0/16", "192.168.7.9", "fd00:1::/32"});
  for (const char* text : {"10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "192.168.7.9",
                           "fd00:1::1", "fd00:1:ffff::", "2a00::5efe:10.1.0.1"}) {
    EXPECT_TRUE(allows(guard, text)) << text;
  }
  for (const char* text : {"10.0.255.255", "10.2.0.0", "192.168.7.8", "fd00:2::1", "127.0.0.1", "169.254.169.254",
                           "2002:a01:203::", "::10.1.2.3"}) {
    EXPECT_FALSE(allows(guard, text)) << text;
  }
  EXPECT_TRUE(allows(allowing({"0.0.0.0/0"}), "169.254.169.254")) << "a range may name it";
  EXPECT_FALSE(allows(allowing({"0.0.0.0/0"}), "fd00::1"));
  EXPECT_TRUE(allows(allowing({"::/0"}), "fd00::1"));
}

TEST(AddressGuard, AllowsLoopbackAloneWhereOnlyThisMachineIsServed) {
  const AddressGuard guard = allowing({}, /*allow_loopback=*/true);
  for (const char* text : {"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(allows(guard, text)) << text;
  for (const char* text : {"0.0.0.0", "::", "10.0.0.1", "169.254.169.254", "::2", "fe80::1"})
    EXPECT_FALSE(allows(guard, text)) << text;
}

TEST(AddressGuard, KnowsAddressesInEverySpelling) {
  for (const char* host :
       {"127.0.0.1", "127.1", "2130706433", "017700000001", "0x7f000001", "0x7f.1", "0177.0.0.1", "0", "0x0", "10.1",
        "3232235777", "::1", "0:0:0:0:0:0:0:1", "::ffff:7f00:1", "fe80::1%lo", "0xa9.0xfe.0xa9.0xfe", "2852039166"}) {
    EXPECT_TRUE(AddressGuard().refuses_literal(host)) << host;
  }
  for (const char* host : {"8.8.8.8", "134744072", "2606:4700:4700::1111", "localhost", "example.com", "no.such.name"})
    EXPECT_FALSE(AddressGuard().refuses_literal(host)) << host << ": public, or a name that is judged later";
  EXPECT_FALSE(allowing({}, true).refuses_literal("2130706433"));
}

TEST(AddressGuard, ChecksTheAddressesThatSocketsConnectTo) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  const auto allows = [](const AddressGuard& guard, const auto& address) {
    return guard.allows(reinterpret_cast<const sockaddr&>(address));
  };
  const AddressGuard guard;
  ASSERT_EQ(inet_pton(AF_INET, "8.8.8.8", &v4.sin_addr), 1);
  EXPECT_TRUE(allows(guard, v4));
  ASSERT_EQ(inet_pton(AF_INET, "10.0.0.1", &v4.sin_addr), 1);
  EXPECT_FALSE(allows(guard, v4));
  EXPECT_TRUE(allows(*AddressGuard::allowing({"10.0.0.0/8"}, false), v4));
  ASSERT_EQ(inet_pton(AF_INET6, "2606:4700::1", &v6.sin6_addr), 1);
  EXPECT_TRUE(allows(guard, v6));
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr), 1);
  EXPECT_FALSE(allows(guard, v6));
  sockaddr_in odd = v4;
  odd.sin_family = AF_UNIX;
  EXPECT_FALSE(allows(guard, odd));
}

TEST(AddressGuard, RefusesInvalidRanges) {
  for (const char* text :
       {"", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0/8", "fd00::/129", "fd00::1/8", "all", "10.0.0.0-10.0.0.9",
        "localhost", "10.0.0.0/8,11.0.0.0/8", " 10.0.0.0/8", "/8", "10.0.0.0/-1"}) {
    const auto guard = AddressGuard::allowing({text}, false);
    ASSERT_FALSE(guard.ok()) << text;
    EXPECT_EQ(guard.error().field, "allow_webhook");
  }
}

}  // namespace
}  // namespace tocsin
