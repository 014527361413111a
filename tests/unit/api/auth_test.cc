#include "api/auth.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

std::optional<Role> role_of(const Tokens& tokens, std::string_view token) {
  const auto holder = tokens.holder_of(token);
  return holder ? std::optional(holder->role) : std::nullopt;
}

constexpr const char* kFile = R"(
[[token]]
name = "ops"
role = "admin"
token = "an-admin-token-of-the-ops-team"
[[token]]
name = "shop"
role = "producer"
sha256 = "5E884898DA28047151D0E56F8DC6292773603D0D6AABBDD62A11EF721D1542D8" # "password"
)";

HttpRequest with(const std::string& authorization) {
  HttpRequest request;
  request.authorization = authorization;
  return request;
}

TEST(Tokens, AreKnownByTextOrDigest) {
  const auto tokens = Tokens::from_text(kFile);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(role_of(*tokens, "an-admin-token-of-the-ops-team"), Role::admin);
  EXPECT_EQ(role_of(*tokens, "password"), Role::producer);
  EXPECT_EQ(role_of(*tokens, "an-admin-token-of-the-ops-tean"), std::nullopt);
  EXPECT_EQ(role_of(*tokens, ""), std::nullopt);
}

TEST(Tokens, RefuseMistakesInTheFile) {
  const std::string good = "name=\"a\"\nrole=\"admin\"\ntoken=\"0123456789abcdef\"\n";
  for (const std::string& text :
       {std::string("[[token]]\nrole=\"admin\"\ntoken=\"0123456789abcdef\""),
        std::string("[[token]]\nname=\"a\"\ntoken=\"0123456789abcdef\""),
        std::string("[[token]]\nname=\"a\"\nrole=\"root\"\ntoken=\"0123456789abcdef\""),
        std::string("[[token]]\nname=\"a\"\nrole=\"admin\""),
        std::string("[[token]]\nname=\"a\"\nrole=\"admin\"\ntoken=\"short\""),
        std::string("[[token]]\nname=\"a\"\nrole=\"admin\"\nsha256=\"12\""),
        "[[token]]\n" + good + "sha256=\"" + std::string(64, 'a') + "\"", "[[token]]\n" + good + "rolle=\"x\"",
        "[token]\n" + good, "[[tokens]]\n" + good, std::string("not toml"), std::string("token = 5")}) {
    EXPECT_FALSE(Tokens::from_text(text)) << text;
  }
  EXPECT_TRUE(Tokens::from_text("[[token]]\n" + good));
}

TEST(Tokens, NameARoleAndNoTypes) {
  const auto tokens = Tokens::from_text(
      "[[token]]\nname = \"a\"\nrole = \"producer\"\ntoken = \"0123456789abcdef\"\ntypes = [\"order.unpaid\"]\n");
  ASSERT_FALSE(tokens) << "a token would reach more than its file says";
  EXPECT_NE(tokens.error().message.find("unknown key types"), std::string::npos) << tokens.error().message;
}

TEST(Tokens, AFileWithoutAnyIsAMistake) {
  EXPECT_FALSE(Tokens::from_file("/dev/null"));
  EXPECT_FALSE(Tokens::from_file("/nonexistent/file"));
}

TEST(Roles, AllowTheirIntendedUse) {
  const auto all = [](Role role) {
    std::string s;
    for (const Access access : {Access::open, Access::read, Access::produce, Access::consume, Access::manage})
      s += allows(role, access) ? '+' : '-';
    return s;
  };
  EXPECT_EQ(all(Role::viewer), "++---");
  EXPECT_EQ(all(Role::producer), "+++--");
  EXPECT_EQ(all(Role::consumer), "++-+-");
  EXPECT_EQ(all(Role::admin), "+++++");
}

TEST(Gate, WithTokensRequiresOneWithTheRight) {
  auto tokens = Tokens::from_text(kFile);
  const Gate gate(std::move(*tokens));
  const auto status = [&](const std::string& authorization, Access access) {
    const auto problem = gate.check(with(authorization), access);
    return problem ? problem->status : 200;
  };
  EXPECT_EQ(status("", Access::open), 200);
  EXPECT_EQ(status("", Access::read), 401);
  EXPECT_EQ(status("Basic cGFzc3dvcmQ=", Access::read), 401);
  EXPECT_EQ(status("Bearer", Access::read), 401);
  EXPECT_EQ(status("Bearer ", Access::read), 401);
  EXPECT_EQ(status("Bearer wrong-token-of-somebody", Access::read), 401);
  EXPECT_EQ(status("Bearer password", Access::read), 200);
  EXPECT_EQ(status("bearer password", Access::produce), 200);
  EXPECT_EQ(status("Bearer password", Access::manage), 403);
  EXPECT_EQ(status("Bearer an-admin-token-of-the-ops-team", Access::manage), 200);
}

TEST(Gate, WithoutTokensServesThisMachineOnly) {
  const Gate gate{Tokens()};
  const auto status = [&](const std::string& host, const std::string& origin) {
    HttpRequest request;
    request.host = host;
    request.origin = origin;
    const auto problem = gate.check(request, Access::manage);
    return problem ? problem->status : 200;
  };
  for (const char* host :
       {"localhost", "localhost:7070", "LOCALHOST:7070", "127.0.0.1:7070", "127.1.2.3", "[::1]:7070", "[::1]", ""})
    EXPECT_EQ(status(host, ""), 200) << host;
  for (const char* host : {"evil.example", "evil.example:7070", "127.0.0.1.evil.example", "localhost.evil.example",
                           "10.0.0.1", "[::2]", "[", "128.0.0.1"})
    EXPECT_EQ(status(host, ""), 403) << host;
  EXPECT_EQ(status("localhost:7070", "http://localhost:7070"), 200);
  for (const char* origin : {"http://evil.example", "null", "http://localhost:8080", "http://localhost"})
    EXPECT_EQ(status("localhost:7070", origin), 403) << origin;
}

TEST(Loopback, IsAnAddressOfThisMachine) {
  for (const char* host : {"localhost", "127.0.0.1", "127.255.0.9", "::1", "[::1]", "0:0:0:0:0:0:0:1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "0.0.0.0", "::", "192.168.0.1", "127.1", "example.org", "::ffff:127.0.0.1 "})
    EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace tocsin
