#include "postgres/text.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "postgres/pg_listener.h"
#include "postgres/registry.h"
#include "postgres/session.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

TEST(PgText, WritesTimesAsPostgresReadsThem) {
  EXPECT_EQ(to_pg(WallTime(0us)), "1970-01-01 00:00:00.000000+00");
  EXPECT_EQ(to_pg(sys_days(2026y / 3 / 1) + 12h + 250ms), "2026-03-01 12:00:00.250000+00");
  EXPECT_EQ(to_pg(sys_days(2000y / 2 / 29) + 23h + 59min + 59s + 999999us), "2000-02-29 23:59:59.999999+00");
  EXPECT_EQ(to_pg(WallTime(-1us)), "1969-12-31 23:59:59.999999+00");
  EXPECT_EQ(to_pg(WallTime::min()), "-infinity");
}

TEST(PgText, ReadsTimesWithAndWithoutFraction) {
  const WallTime second = sys_days(2026y / 11 / 21) + 9h + 5min + 35s;
  EXPECT_EQ(wall_time_from_pg("2026-11-21 09:05:35+00"), second);
  EXPECT_EQ(wall_time_from_pg("2026-11-21 09:05:35.5+00"), second + 500ms);
  EXPECT_EQ(wall_time_from_pg("2026-11-21 09:05:35.25+00"), second + 250ms);
  EXPECT_EQ(wall_time_from_pg("2026-11-21 09:05:35.000001+00"), second + 1us);
  EXPECT_EQ(wall_time_from_pg("2026-11-21 09:05:35.120300+00"), second + 120300us);
}

TEST(PgText, TextOfOtherWritersIsReadOrIsAnError) {
  EXPECT_EQ(wall_time_from_pg("infinity"), WallTime::max());
  EXPECT_EQ(wall_time_from_pg("-infinity"), WallTime::min());
  for (const char* text : {"10000-01-01 00:00:00+00", "294276-12-31 23:59:59.999999+00", "0044-03-15 12:00:00+00 BC",
                           "2026-11-21 09:05:35+01", "2026-11-21", ""})
    EXPECT_THROW(wall_time_from_pg(text), std::range_error) << text;
}

TEST(PgText, EveryTimeOfTheContractRoundTrips) {
  const WallTime first = sys_days(2000y / 1 / 1), last = sys_days(2077y / 1 / 1);
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> any(first.time_since_epoch().count(), last.time_since_epoch().count());
  for (int i = 0; i < 100'000; ++i) {
    WallTime time{Duration(any(random))};
    if (i % 3 == 0) time = std::chrono::floor<std::chrono::seconds>(time);
    ASSERT_EQ(wall_time_from_pg(to_pg(time)), time) << to_pg(time);
  }
}

TEST(PgText, ArraysQuoteWhatNeedsIt) {
  const std::pair<const char*, const char*> table[] = {
      {"plain", R"({"plain"})"},
      {"", R"({""})"},
      {"NULL", R"({"NULL"})"},
      {"a,b", R"({"a,b"})"},
      {"{}", R"({"{}"})"},
      {R"(say "hi")", R"({"say \"hi\""})"},
      {R"(back\slash)", R"({"back\\slash"})"},
      {R"(\")", R"({"\\\""})"},
      {" spaces ", R"({" spaces "})"},
      {"line\nbreak\ttab", "{\"line\nbreak\ttab\"}"},
      {"订单 😀", "{\"订单 😀\"}"},
      {R"({"k":"v\u00e9"})", R"({"{\"k\":\"v\\u00e9\"}"})"},
  };
  for (const auto& [value, wanted] : table) {
    PgArray array;
    array.add_text(value);
    EXPECT_EQ(array.literal(), wanted);
  }
}

TEST(PgText, ArraysSeparateTheirElements) {
  PgArray empty, numbers, mixed;
  EXPECT_EQ(empty.literal(), "{}");
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-7}, INT64_MAX, INT64_MIN}) numbers.add(n);
  EXPECT_EQ(numbers.literal(), "{0,-7,9223372036854775807,-9223372036854775808}");
  mixed.add_null();
  mixed.add(WallTime(0us));
  mixed.add(std::optional<WallTime>());
  mixed.add_text("x");
  EXPECT_EQ(mixed.literal(), R"({NULL,"1970-01-01 00:00:00.000000+00",NULL,"x"})");
}

TEST(Notification, ReadsNotificationsOfCreates) {
  const auto one = parse_due("66569 3 1767225600000000");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].job_id, 66569);
  EXPECT_EQ(one[0].type_id, 3);
  EXPECT_EQ(one[0].fire_at, WallTime(1767225600s));
  EXPECT_EQ(parse_due("1 2 3;4 5 6").size(), 2U);
}

TEST(Notification, IgnoresOtherNotifications) {
  for (const char* payload : {"", ";", ";;;", "hello", "1", "1 2", "1 2 x", "-5 2 3", "0 2 3",
                              "99999999999999999999 1 1", "1 99999999999 1"}) {
    EXPECT_TRUE(parse_due(payload).empty()) << payload;
  }
  EXPECT_EQ(parse_due("rubbish;1 2 3;more").size(), 1U);
}

TEST(DatabaseName, NeverShowsUserOrPassword) {
  const std::pair<const char*, const char*> table[] = {
      {"postgresql://bob:s3cret@db.example:5433/shop", "db.example:5433/shop"},
      {"postgresql://bob:s3cret@db.example/shop?sslpassword=s3cret", "db.example/shop"},
      {"host=db.example port=5433 dbname=shop user=bob password=s3cret", "db.example:5433/shop"},
      {"postgresql://bob:s3cret@one:1,two:2/shop", "one,two:1,2/shop"},
      {"postgresql://bob:s3cret@[::1]:5433/shop", "::1:5433/shop"},
      {"dbname=shop password=s3cret", "local/shop"},
  };
  for (const auto& [url, wanted] : table) {
    const auto name = database_name(url);
    ASSERT_TRUE(name.ok()) << url;
    EXPECT_EQ(*name, wanted);
    EXPECT_EQ(name->find("s3cret"), std::string::npos);
  }
}

TEST(DatabaseName, RefusesAnInvalidUrlWithoutShowingItsPassword) {
  for (const char* url :
       {"postgresql://bob:s3cret@host:x:y/shop?nonsense=s3cret&", "passwort=s3cret", "host='unterminated"}) {
    const auto name = database_name(url);
    ASSERT_FALSE(name.ok()) << url;
    EXPECT_EQ(name.error().code, ErrorCode::invalid);
    EXPECT_EQ(name.error().message.find("s3cret"), std::string::npos) << name.error().message;
  }
}

TEST(DatabaseUrl, MayHaveANameInFront) {
  const std::tuple<const char*, const char*, const char*> table[] = {
      {"postgresql://db/shop", "", "postgresql://db/shop"},
      {"eu-1=postgresql://db/shop?options=-c%20a%3Db", "eu-1", "postgresql://db/shop?options=-c%20a%3Db"},
      {"Eu.2=host=db dbname=shop", "Eu.2", "host=db dbname=shop"},
      {"host=db dbname=shop", "", "host=db dbname=shop"},
      {"host=postgres://db", "host", "postgres://db"},  // nobody's host
      {"dbname=shop", "", "dbname=shop"},
  };
  for (const auto& [text, name, url] : table) {
    const auto parsed = parse_database(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->name, name) << text;
    EXPECT_EQ(parsed->url, url) << text;
  }
  const std::string long_name(64, 'x');
  for (const std::string& bad : {std::string("=postgresql://db/shop"), std::string("a b=postgresql://db/shop"),
                                 long_name + "=postgresql://db/shop", std::string("eu=nonsense"), std::string("")}) {
    const auto parsed = parse_database(bad);
    if (bad.empty()) continue;  // libpq's defaults
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().field, "database");
  }
}

TEST(ConnectionString, CarriesTheSettingsThatCorrectnessRestsOn) {
  SessionConfig config;
  config.url = "postgresql://bob@db/shop?options=-c%20synchronous_commit%3Doff&connect_timeout=2";
  const auto text = connection_string(config);
  ASSERT_TRUE(text.ok());
  EXPECT_GT(text->find("synchronous_commit=on"), text->find("synchronous_commit=off")) << "the last one wins";
  EXPECT_NE(text->find("synchronous_commit=on"), std::string::npos);
  EXPECT_NE(text->find("connect_timeout='2'"), std::string::npos) << "the user's own wins";
  EXPECT_NE(text->find("timezone=UTC"), std::string::npos);
  EXPECT_EQ(connection_string(config, /*has_settings=*/false)->find("options"), std::string::npos);
}

}  // namespace
}  // namespace tocsin
