#include "api/time_text.h"

#include <gtest/gtest.h>

#include "api/url.h"
#include "core/duration_text.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

TEST(TimeText, ReadsAndWritesTheSameInstant) {
  const std::pair<const char*, const char*> table[] = {
      {"2026-03-01T12:00:00.250Z", "2026-03-01T12:00:00.250000Z"},
      {"2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000000Z"},
      {"2026-03-01t12:00:00z", "2026-03-01T12:00:00.000000Z"},
      {"2026-03-01T13:30:00+01:30", "2026-03-01T12:00:00.000000Z"},
      {"2026-03-01T00:30:00-23:59", "2026-03-02T00:29:00.000000Z"},
      {"2026-03-01T12:00:00-00:00", "2026-03-01T12:00:00.000000Z"},
      {"2024-02-29T23:59:59.999999Z", "2024-02-29T23:59:59.999999Z"},
      {"2026-12-31T23:59:59.9999991Z", "2027-01-01T00:00:00.000000Z"},
      {"2026-03-01T12:00:00.000000001Z", "2026-03-01T12:00:00.000001Z"},
      {"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"},
      {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
      {"2000-02-29T00:00:00.1Z", "2000-02-29T00:00:00.100000Z"},
  };
  for (const auto& [text, normal] : table) {
    const auto time = time_from_text(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(rfc3339(*time), normal);
    EXPECT_EQ(time_from_text(normal), time);
  }
}

TEST(TimeText, RefusesWhatIsNotRfc3339) {
  for (const char* text : {"",
                           "now",
                           "2026-03-01",
                           "2026-03-01T12:00:00",
                           "2026-03-01 12:00:00Z",
                           "2026-3-1T12:00:00Z",
                           "2026-03-01T12:00Z",
                           "2026-03-01T12:00:00.Z",
                           "2026-03-01T12:00:00.0123456789Z",
                           "2026-03-01T12:00:60Z",
                           "2026-03-01T12:60:00Z",
                           "2026-03-01T24:00:00Z",
                           "2026-02-29T12:00:00Z",
                           "2026-04-31T12:00:00Z",
                           "2026-13-01T12:00:00Z",
                           "2026-00-01T12:00:00Z",
                           "2026-01-00T12:00:00Z",
                           "1900-02-29T00:00:00Z",
                           "9999-12-31T23:59:59-00:01",
                           "9999-12-31T23:59:59.9999999Z",
                           "0000-01-01T00:00:00+00:01",
                           "2026-03-01T12:00:00+24:00",
                           "2026-03-01T12:00:00+01:60",
                           "2026-03-01T12:00:00+0100",
                           "2026-03-01T12:00:00+1:00",
                           "2026-03-01T12:00:00ZZ",
                           "2026-03-01T12:00:00Z ",
                           " 2026-03-01T12:00:00Z",
                           "+2026-03-01T12:00:00Z",
                           "12026-03-01T12:00:00Z",
                           "infinity",
                           "1772366400",
                           "2026-03-01T12:00:00,5Z",
                           "2026-03-01T12:00:00.5",
                           "2026-03-01T-1:00:00Z",
                           "2026-03-01T12:00:00 +01:00"}) {
    EXPECT_FALSE(time_from_text(text)) << text;
  }
}

TEST(TimeText, WritesInfinityAsTheLatestTime) {
  EXPECT_EQ(rfc3339(WallTime::max()), "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(rfc3339(WallTime::min()), "0000-01-01T00:00:00.000000Z");
}

TEST(TimeText, WritesDurationsInWords) {
  using namespace std::chrono_literals;
  EXPECT_EQ(duration_text(350ms), "350 ms");
  EXPECT_EQ(duration_text(12s + 540ms), "12.5 s");
  EXPECT_EQ(duration_text(-90s), "1 min 30 s");
  EXPECT_EQ(duration_text(3h + 20min), "3 h 20 min");
  EXPECT_EQ(duration_text(50h), "2 d 2 h");
}

TEST(Url, TakesATargetApart) {
  const auto target = target_from_text("/v1/types/a%2Fb%20c?x=1%262&y=a+b&z&&w==");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, (std::vector<std::string>{"v1", "types", "a/b c"}));
  EXPECT_EQ(target->query,
            (std::vector<std::pair<std::string, std::string>>{{"x", "1&2"}, {"y", "a b"}, {"z", ""}, {"w", "="}}));
  EXPECT_TRUE(target_from_text("/")->path.empty());
  EXPECT_EQ(target_from_text("/a/")->path, (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(target_from_text("/a+b")->path, (std::vector<std::string>{"a+b"}));
}

TEST(Url, RefusesBrokenEncodings) {
  for (const char* text : {"", "v1", "*", "/%", "/%1", "/%zz", "/a%00b", "/%ff", "/%c3%28", "/?%=1", "/?%00=1"})
    EXPECT_FALSE(target_from_text(text)) << text;
  for (const char* text : {"/?a=%", "/?a=%00", "/?x=1&a=%ff&b=%", "/?a=%zz&x=1"}) {
    const auto target = target_from_text(text);
    ASSERT_TRUE(target) << text;
    EXPECT_EQ(target->malformed, "a") << text;
  }
  EXPECT_EQ(target_from_text("/?=%zz")->malformed, "") << "the name is empty";
  EXPECT_FALSE(target_from_text("/?=z")->malformed);
}

TEST(Url, Base64UrlRoundTrips) {
  for (const std::string bytes : {"", "a", "ab", "abc", "job:123456789", "\xFF\xFE\x01"})
    EXPECT_EQ(base64url_decoded(base64url(bytes)), bytes);
  EXPECT_EQ(base64url("\xFB\xFF"), "-_8");
  EXPECT_FALSE(base64url_decoded("a+b"));
  EXPECT_FALSE(base64url_decoded("a=="));
}

}  // namespace
}  // namespace tocsin
