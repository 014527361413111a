#include "delivery/webhook_settings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::string handler(const json& settings, const std::string& url = "http://127.0.0.1:9000/hook") {
  json object = {{"kind", "webhook"}, {"url", url}};
  if (settings.is_object()) object.update(settings);
  return object.dump();
}

HttpTarget target_of(const std::string& url) {
  const auto parsed = parse_webhook_settings(handler({}, url));
  EXPECT_TRUE(parsed.ok()) << url;
  return parsed.ok() ? parsed.value().target : HttpTarget{};
}

std::string field_at_fault(const std::string& handler_json, Duration ttr = 30s) {
  const auto error = check_webhook(handler_json, ttr);
  if (!error) return "";
  EXPECT_EQ(error->code, ErrorCode::invalid);
  EXPECT_FALSE(error->message.empty());
  return error->field;
}

TEST(WebhookSettings, ReadsTheFullObject) {
  const auto parsed = parse_webhook_settings(handler({{"secret", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"},
                                                      {"timeout_ms", 2500},
                                                      {"headers", {{"Authorization", "Bearer x"}, {"X-Empty", ""}}},
                                                      {"async", true}}));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().keys, std::vector<std::string>{"0123456789abcdef01234567"});
  EXPECT_TRUE(parsed.value().is_async);
  EXPECT_EQ(parsed.value().timeout, 2500ms);
  EXPECT_EQ(parsed.value().headers.size(), 2u);
}

TEST(WebhookSettings, ReadsTheUrl) {
  const HttpTarget plain = target_of("HTTP://Example.com");
  EXPECT_FALSE(plain.is_https);
  EXPECT_EQ(plain.host, "Example.com");
  EXPECT_EQ(plain.port, 80);
  EXPECT_EQ(plain.authority, "Example.com");
  EXPECT_EQ(plain.path, "/");
  EXPECT_EQ(plain.origin, "http://example.com:80");

  const HttpTarget ipv6 = target_of("https://[::1]:8443/a%20b?q=1&r");
  EXPECT_TRUE(ipv6.is_https);
  EXPECT_EQ(ipv6.host, "::1");
  EXPECT_EQ(ipv6.port, 8443);
  EXPECT_EQ(ipv6.authority, "[::1]:8443");
  EXPECT_EQ(ipv6.path, "/a%20b?q=1&r");
  EXPECT_EQ(ipv6.origin, "https://[::1]:8443");

  EXPECT_EQ(target_of("https://h?x=1").path, "/?x=1");
  EXPECT_EQ(target_of("https://h").port, 443);
  EXPECT_EQ(target_of("https://h:/").port, 443);
}

TEST(WebhookSettings, RefusesBadUrls) {
  for (const char* url : {"",
                          "foo",
                          "/hook",
                          "//h/hook",
                          "ftp://h/",
                          "file:///etc/passwd",
                          "http:///x",
                          "http://",
                          "http:h",
                          "http://user@h/",
                          "http://user:password@h/",
                          "http://h:0/",
                          "http://h:65536/",
                          "http://h:99999999999999999999/",
                          "http://h:-1/",
                          "http://h:80:80/",
                          "http://h:12a/",
                          "http://h/#part",
                          "http://h /",
                          "http://h/a b",
                          "http://h/\r\nX: y",
                          "http://h%00/",
                          "http://h%2f/",
                          "http://[::1/",
                          "http://[v1.a]/",
                          "http://h/\xc3\xbc",
                          "http://a,b/"}) {
    EXPECT_EQ(field_at_fault(handler({}, url)), "handler.url") << url;
  }
  EXPECT_EQ(field_at_fault(handler({}, "http://h/" + std::string(2048, 'a'))), "handler.url");
  EXPECT_EQ(field_at_fault(R"({"kind":"webhook"})"), "handler.url");
  EXPECT_EQ(field_at_fault(handler({{"url", 7}})), "handler.url");
  EXPECT_EQ(field_at_fault(handler({{"url", nullptr}})), "handler.url");
}

TEST(WebhookSettings, BoundsTheTimeoutByTheTtr) {
  EXPECT_EQ(field_at_fault(handler({{"timeout_ms", 1}})), "");
  EXPECT_EQ(field_at_fault(handler({{"timeout_ms", 30000}}), 30s), "");
  EXPECT_EQ(field_at_fault(handler({{"timeout_ms", 30001}}), 30s), "handler.timeout_ms");
  EXPECT_EQ(field_at_fault(handler({}), 1s), "") << "the default is no setting of the caller; the lease bounds it";
  for (const json& bad :
       {json(0), json(-1), json(1.5), json("10"), json(true), json(INT64_MAX), json(UINT64_MAX), json(1e300)}) {
    EXPECT_EQ(field_at_fault(handler({{"timeout_ms", bad}})), "handler.timeout_ms") << bad;
  }
}

TEST(WebhookSettings, RefusesHeadersThatWouldBreakTheRequest) {
  const auto fault = [](const std::string& name, const json& value) {
    return field_at_fault(handler({{"headers", {{name, value}}}}));
  };
  EXPECT_EQ(fault("X-Shop", "a\tb \xc3\xbc"), "");
  for (const char* name :
       {"Host", "host", "Content-Length", "TRANSFER-ENCODING", "Connection", "Content-Type", "User-Agent", "webhook-id",
        "Webhook-Signature", "webhook-timestamp", "tocsin-attempt", "traceparent", "Upgrade", "Expect", "TE"}) {
    EXPECT_EQ(fault(name, "x"), std::string("handler.headers.") + name);
  }
  for (const char* value : {"a\r\nb", "a\nb", "a\rb", "\x7f", "\x01"})
    EXPECT_EQ(fault("X", value), "handler.headers.X");
  EXPECT_EQ(fault("X", std::string("a\0b", 3)), "handler.headers.X");
  EXPECT_EQ(fault("X", 1), "handler.headers.X");
  for (const char* name : {"", "a b", "a:", "a\r\nb", "\xc3\xbc", "a\"", "(a)"})
    EXPECT_EQ(fault(name, "x"), "handler.headers") << name;
  EXPECT_EQ(fault("X", std::string(9000, 'x')), "handler.headers");
  EXPECT_EQ(field_at_fault(handler({{"headers", json::array()}})), "handler.headers");
  json many = json::object();
  for (int i = 0; i < 65; ++i) many["X-" + std::to_string(i)] = "";
  EXPECT_EQ(field_at_fault(handler({{"headers", many}})), "handler.headers");
}

TEST(WebhookSettings, RefusesWeakSecrets) {
  EXPECT_EQ(field_at_fault(handler({{"secret", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY="}})), "handler.secret")
      << "23 bytes";
  EXPECT_EQ(field_at_fault(handler(
                {{"secret",
                  "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="}})),
            "");
  EXPECT_EQ(field_at_fault(handler(
                {{"secret",
                  "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0A="}})),
            "handler.secret")
      << "65 bytes";
  EXPECT_EQ(field_at_fault(handler({{"secret", "password"}})), "handler.secret");
  EXPECT_EQ(field_at_fault(handler({{"secret", 1}})), "handler.secret");
  const auto error = check_webhook(handler({{"secret", "correct horse"}}), 30s);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message.find("horse"), std::string::npos) << "no secret in a message";
}

TEST(WebhookSettings, TakesSeveralSecretsWhileReceiversChange) {
  const json good = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
  const auto parsed = parse_webhook_settings(handler({{"secret", json::array({good, other})}}));
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed.value().keys.size(), 2u);
  EXPECT_EQ(parsed.value().keys[0], "0123456789abcdef01234567");
  EXPECT_EQ(field_at_fault(handler({{"secret", json::array({good, "whsec_???"})}})), "handler.secret[1]");
  EXPECT_EQ(field_at_fault(handler({{"secret", json::array({good, 7})}})), "handler.secret[1]");
  EXPECT_EQ(field_at_fault(handler({{"secret", json::array()}})), "handler.secret");
  EXPECT_EQ(field_at_fault(handler({{"secret", json::array({good, good, good, good, good})}})), "handler.secret");
}

TEST(WebhookSettings, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(field_at_fault(handler({{"retries", 3}})), "handler.retries");
  EXPECT_EQ(field_at_fault(handler({{"async", "yes"}})), "handler.async");
  EXPECT_EQ(field_at_fault(handler({{"headers", {{"Tocsin-Lease-Token", "1"}}}})),
            "handler.headers.Tocsin-Lease-Token");
  for (const char* text : {"", "[]", "null", "{", "7"}) EXPECT_EQ(field_at_fault(text), "handler") << text;
}

}  // namespace
}  // namespace tocsin
