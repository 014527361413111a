// /v1/reports/...
#include "support/api_fixture.h"

namespace tocsin {
namespace {

class ReportsApi : public ApiTest {
 protected:
  explicit ReportsApi(int databases = 1) : ApiTest(databases) {}
  static std::string hour_row(const std::string& slot, const std::string& type, int done, double max_ms,
                              const std::string& buckets) {
    return Json{{"slot", slot},     {"biz_type", type}, {"created", 3},      {"done", done},
                {"cancelled", 0},   {"dead", 0},        {"dropped_late", 0}, {"revived", 0},
                {"attempts", done}, {"retried", 0},     {"max_ms", max_ms},  {"buckets", Json::parse(buckets)}}
        .dump();
  }
  static std::string packed(int bucket, std::int64_t n) {
    return std::to_string((static_cast<std::int64_t>(bucket) << 44) + n);
  }
};

class ReportsOfTwo : public ReportsApi {
 protected:
  ReportsOfTwo() : ReportsApi(2) {}
};

constexpr const char* kSlot = "2026-03-01T12:00:00.000000Z";

TEST_F(ReportsApi, ARangeWithoutDataAddsUpToZeros) {
  const std::map<std::string, std::string> totals = {
      {"hour", R"({"created":0,"done":0,"cancelled":0,"dead":0,"dropped_late":0,"revived":0,"attempts":0,"retried":0,
                   "p50_ms":null,"p90_ms":null,"p99_ms":null,"max_ms":null})"},
      {"lateness", R"({"n":0,"p50_ms":null,"p90_ms":null,"p99_ms":null,"max_ms":null})"},
      {"slo", R"({"n":0,"missed":0})"},
      {"dead", R"({"n":0})"},
      {"outcome", R"({"created":0,"done":0,"cancelled":0,"dead":0,"open":0})"},
      {"backlog", R"({"due":0})"}};
  for (const char* name :
       {"hour", "day", "lateness", "duration", "slo", "dead", "outcome", "delay", "horizon", "backlog", "audit"}) {
    const Answer answer = get(std::string("/v1/reports/") + name +
                              "?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z&type=order.unpaid&tz=UTC");
    EXPECT_EQ(answer.status, 200) << name << answer.text;
    EXPECT_EQ(answer.body.at("items"), Json::array()) << name;
    EXPECT_EQ(answer.body.at("next_cursor"), nullptr) << name;
    EXPECT_GE(answer.body.at("columns").size(), 4U) << name;
    EXPECT_EQ(answer.body.contains("totals"), name != std::string("horizon") && name != std::string("audit")) << name;
    if (totals.contains(name)) {
      EXPECT_EQ(answer.body.at("totals"), Json::parse(totals.at(name))) << name;
    }
  }
}

TEST_F(ReportsApi, TotalsAreThoseOfAllItems) {
  backend.database.report_rows[Report::hour] = {hour_row(kSlot, "a", 5, 0.1, "[" + packed(57, 90) + "]"),
                                                hour_row(kSlot, "b", 7, 10, "[" + packed(163, 10) + "]")};
  const Json totals = get("/v1/reports/hour").body.at("totals");
  EXPECT_EQ(totals["done"], 12);
  EXPECT_NEAR(totals["p50_ms"].get<double>(), 0.1, 0.01) << "of all starts, not of types";
  EXPECT_EQ(totals["max_ms"], 10.0);
  EXPECT_EQ(get("/v1/reports/hour?limit=1").body.at("totals").at("done"), 5) << "of the items of this answer";
}

TEST_F(ReportsApi, TheAnswerNamesTheZoneOfItsRows) {
  EXPECT_EQ(get("/v1/reports/day?tz=Europe/Berlin").body.at("tz"), "Europe/Berlin");
  for (const char* name : {"hour", "lateness", "duration", "slo", "dead", "outcome", "delay", "horizon", "audit"})
    EXPECT_EQ(get(std::string("/v1/reports/") + name + "?tz=Europe/Berlin").body.at("tz"), "UTC") << name;
  EXPECT_FALSE(get("/v1/reports/dead").body.contains("tz"));
}

TEST_F(ReportsApi, ADueCountIsExactOnlyIfEveryDatabasesIs) {
  const auto row = [](const char* type, bool is_exact) {
    return Json{{"biz_type", type}, {"due", 2000}, {"is_exact", is_exact}}.dump();
  };
  backend.database.report_rows[Report::backlog] = {row("a", true), row("b", false)};
  const Answer answer = get("/v1/reports/backlog");
  EXPECT_EQ(answer.body["items"][0]["is_exact"], true) << answer.text;
  EXPECT_EQ(answer.body["items"][1]["is_exact"], false);
}

TEST_F(ReportsApi, TheLastMinutesOfEveryTypeAreAReport) {
  backend.database.report_rows[Report::recent] = {Json{
      {"biz_type", "a"},
      {"seconds", 900.0},
      {"created", 2},
      {"done", 1},
      {"dead", 0},
      {"n", 4},
      {"missed", 0},
      {"max_ms", 10},
      {"target_ms", 1000},
      {"target_share", 0.9},
      {"buckets", {}}}.dump()};
  const Answer answer = get("/v1/reports/recent");
  ASSERT_EQ(answer.body["items"].size(), 1U) << answer.text;
  EXPECT_EQ(answer.body["items"][0]["n"], 4);
  EXPECT_TRUE(answer.body["items"][0].contains("p99_ms"));
}

TEST_F(ReportsApi, ASoleDatabaseGivesPercentilesOfDaysOfZonesItself) {
  backend.database.report_rows[Report::day] = {
      R"({"slot":"2026-03-02T00:00:00.000000Z","biz_type":"a","created":1,"p50_ms":1.5,"p99_ms":9.5,"max_ms":10.0})"};
  const Answer answer = get("/v1/reports/day?tz=Europe/Berlin");
  EXPECT_TRUE(backend.database.reports_asked.back().is_only_database);
  EXPECT_EQ(answer.body["items"][0]["p99_ms"], 9.5) << answer.text;
  EXPECT_EQ(answer.body["totals"]["p99_ms"], nullptr) << "percentiles are not added up";
}

TEST_F(ReportsApi, OnlyTheHorizonHasWidths) {
  EXPECT_EQ(get("/v1/reports/horizon?width=day").status, 200);
  EXPECT_EQ(get("/v1/reports/horizon?width=week").field(), "width");
  EXPECT_EQ(get("/v1/reports/hour?width=day").field(), "width");
}

TEST_F(ReportsApi, InvalidFieldsAreNamed) {
  for (const char* name : {"hour", "day", "lateness", "duration", "slo", "dead", "dead_now", "outcome", "delay",
                           "horizon", "backlog", "audit", "recent"}) {
    const std::string path = std::string("/v1/reports/") + name + "?";
    const auto is_refused = [&](const std::string& query, int status, const std::string& field) {
      const Answer answer = get(path + query);
      EXPECT_EQ(answer.status, status) << path << query << answer.text;
      EXPECT_EQ(answer.field(), field) << path << query;
    };
    is_refused("colour=red", 400, "colour");
    is_refused("biz_type=order.unpaid", 400, "biz_type");
    is_refused("type=nobody", 422, "type");
    is_refused("from=yesterday", 400, "from");
    is_refused("to=2026-03-01", 400, "to");
    is_refused("from=2027-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", 400, "to");
    is_refused("tz=", 422, "tz");
    is_refused("tz=" + std::string(65, 'x'), 422, "tz");
    for (const char* limit : {"0", "1001", "-1", "ten", "1.5", "99999999999", ""})
      is_refused(std::string("limit=") + limit, 400, "limit");
    is_refused("cursor=nonsense", 400, "cursor");
    is_refused("cursor=", 400, "cursor");
    is_refused("limit=1&limit=2", 400, "limit");
  }
  EXPECT_EQ(get("/v1/reports/nothing").status, 404);
}

// Every path that gives a list or a report takes what it has published, and nothing else.
TEST_F(ReportsApi, EveryReadRefusesUnknownParameters) {
  int read = 0;
  for (const Route& route : api.router().routes()) {
    if (route.method != "GET" || !route.path.starts_with("/v1/")) continue;
    std::string path = route.path;
    if (const auto at = path.find('{'); at != std::string::npos) path.replace(at, path.find('}') - at + 1, "1");
    const std::string mark = path.find('?') == std::string::npos ? "?" : "&";
    const Answer unknown = get(path + mark + "colour=red");
    EXPECT_EQ(unknown.status, 400) << path;
    EXPECT_EQ(unknown.field(), "colour") << path;
    for (const Parameter& parameter : route.query) {
      if (parameter.name != "limit" && parameter.name != "cursor" && parameter.name != "from") continue;
      const Answer bad = get(path + mark + parameter.name + "=%20no%20");
      EXPECT_EQ(bad.status, 400) << path << ' ' << parameter.name << bad.text;
      EXPECT_EQ(bad.field(), parameter.name) << path;
    }
    ++read;
  }
  EXPECT_GT(read, 20);
}

TEST_F(ReportsApi, TheFilterReachesTheDatabase) {
  get("/v1/reports/day?type=order.unpaid&from=2026-03-01T01:00:00%2B01:00&to=2026-03-02T00:00:00Z&tz=Europe/"
      "Berlin&limit=7");
  ASSERT_EQ(backend.database.reports_asked.size(), 1U);
  const ReportQuery& asked = backend.database.reports_asked[0];
  EXPECT_EQ(asked.report, Report::day);
  EXPECT_EQ(asked.biz_type, "order.unpaid");
  EXPECT_EQ(asked.from, WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)));
  EXPECT_EQ(asked.tz, "Europe/Berlin");
  EXPECT_EQ(asked.limit, 8) << "one more, to know whether there is another page";
}

TEST_F(ReportsApi, PagesContinueAfterTheLastRow) {
  backend.database.report_rows[Report::outcome] = {
      R"({"created_day":"2026-03-02T00:00:00.000000Z","biz_type":"a","created":1,"done":1,"cancelled":0,"dead":0,"open":0})",
      R"({"created_day":"2026-03-01T00:00:00.000000Z","biz_type":"a","created":2,"done":2,"cancelled":0,"dead":0,"open":0})"};
  const Answer first = get("/v1/reports/outcome?limit=1");
  ASSERT_EQ(first.body.at("items").size(), 1U) << first.text;
  EXPECT_EQ(first.body["items"][0]["created"], 1);
  get("/v1/reports/outcome?limit=1&cursor=" + first.body["next_cursor"].get<std::string>());
  EXPECT_EQ(backend.database.reports_asked.back().after,
            (std::vector<std::string>{"2026-03-02T00:00:00.000000Z", "a"}));
  EXPECT_EQ(get("/v1/reports/dead?cursor=" + first.body["next_cursor"].get<std::string>()).field(), "cursor");
}

TEST_F(ReportsApi, ACursorBelongsToItsFilter) {
  backend.database.report_rows[Report::day] = {R"({"slot":"2026-03-02T00:00:00.000000Z","biz_type":"a","created":1})",
                                               R"({"slot":"2026-03-01T00:00:00.000000Z","biz_type":"a","created":2})"};
  const std::string filter = "/v1/reports/day?limit=1&type=order.unpaid&from=2026-01-01T00:00:00Z&tz=Europe/Berlin";
  const std::string cursor = "&cursor=" + get(filter).body.at("next_cursor").get<std::string>();
  EXPECT_EQ(get(filter + cursor).status, 200);
  for (const char* other : {"", "&type=order.unpaid&from=2026-01-01T00:00:00Z", "&type=order.unpaid&tz=Europe/Berlin",
                            "&from=2026-01-01T00:00:00Z&tz=Europe/Berlin"}) {
    const Answer answer = get(std::string("/v1/reports/day?limit=1") + other + cursor);
    EXPECT_EQ(answer.status, 400) << other;
    EXPECT_EQ(answer.field(), "cursor") << other;
  }
  EXPECT_EQ(get(filter + "&to=2027-01-01T00:00:00Z" + cursor).field(), "cursor");
}

TEST_F(ReportsApi, AReportReadAsAWholeHasPagesToo) {
  for (const char* type : {"a", "b", "c"})
    backend.database.report_rows[Report::backlog].push_back(
        Json{{"biz_type", type}, {"due", 1}, {"oldest_due_at", kSlot}, {"oldest_age_ms", 5.0}, {"waits_for", "workers"}}
            .dump());
  backend.database.report_rows[Report::backlog].resize(3);
  const Answer first = get("/v1/reports/backlog?limit=2");
  ASSERT_EQ(first.body["items"].size(), 2U);
  const Answer second = get("/v1/reports/backlog?limit=2&cursor=" + first.body["next_cursor"].get<std::string>());
  ASSERT_EQ(second.body["items"].size(), 1U) << second.text;
  EXPECT_EQ(second.body["items"][0]["biz_type"], "c");
  EXPECT_EQ(second.body["next_cursor"], nullptr);
}

TEST_F(ReportsOfTwo, TheSampleOfDeadJobsIsTheLatestOfAllDatabases) {
  const auto dead = [](int n, const std::string& last_at, const std::string& sample) {
    return Json{{"biz_type", "a"},    {"reason", "r"},          {"n", n}, {"is_exact", true}, {"first_at", kSlot},
                {"last_at", last_at}, {"sample_job_id", sample}}
        .dump();
  };
  const std::string early = "2026-03-01T12:00:01.000000Z", late = "2026-03-01T12:00:02.000000Z";
  for (const int later : {0, 1}) {
    backend.database_at(later).report_rows[Report::dead_now] = {dead(1, late, "2048")};
    backend.database_at(1 - later).report_rows[Report::dead_now] = {dead(2, early, "1024")};
    const Json item = get("/v1/reports/dead_now").body.at("items").at(0);
    EXPECT_EQ(item["n"], 3);
    EXPECT_EQ(item["last_at"], late);
    EXPECT_EQ(item["sample_job_id"], "2048") << later;
  }
}

TEST_F(ReportsOfTwo, DatabasesAreAddedUpAndHistogramsMerged) {
  // 100 us and 10 ms: 90 of 100 starts lie in the first bucket of the first database.
  backend.database_at(0).report_rows[Report::hour] = {
      hour_row(kSlot, "order.unpaid", 5, 0.1, "[" + packed(57, 90) + "]")};
  backend.database_at(1).report_rows[Report::hour] = {
      hour_row(kSlot, "order.unpaid", 7, 10, "[" + packed(163, 10) + "]"), hour_row(kSlot, "zoo", 1, 1, "[]")};
  const Answer answer = get("/v1/reports/hour");
  ASSERT_EQ(answer.body["items"].size(), 2U) << answer.text;
  const Json& item = answer.body["items"][0];
  EXPECT_EQ(item["done"], 12);
  EXPECT_EQ(item["created"], 6);
  EXPECT_NEAR(item["p50_ms"].get<double>(), 0.1, 0.01);
  EXPECT_GT(item["p90_ms"].get<double>(), 5);
  EXPECT_EQ(item["max_ms"], 10.0);
  EXPECT_FALSE(item.contains("buckets"));
  EXPECT_EQ(answer.body["items"][1]["p50_ms"], nullptr);
}

TEST_F(ReportsOfTwo, ATargetIsJudgedByTheSumOfAllDatabases) {
  const auto row = [](int n, int missed) {
    return Json{{"biz_type", "order.unpaid"},
                {"target_ms", 1000.0},
                {"target_share", 0.9},
                {"days", 30},
                {"n", n},
                {"missed", missed}}
        .dump();
  };
  backend.database_at(0).report_rows[Report::slo] = {row(90, 0)};
  backend.database_at(1).report_rows[Report::slo] = {row(10, 5)};
  const Json item = get("/v1/reports/slo").body["items"][0];
  EXPECT_EQ(item["n"], 100);
  EXPECT_DOUBLE_EQ(item["share"].get<double>(), 0.95);
  EXPECT_NEAR(item["budget_left"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(item["is_met"], true);

  backend.database_at(1).report_rows[Report::slo] = {row(10, 10)};
  const Json used = get("/v1/reports/slo").body["items"][0];
  EXPECT_EQ(used["is_met"], true) << "10 of 100 may miss a target of 0.9";
  EXPECT_EQ(used["budget_left"], 0.0);
  backend.database_at(1).report_rows[Report::slo] = {row(10, 11)};
  EXPECT_EQ(get("/v1/reports/slo").body["items"][0]["is_met"], false);
}

TEST_F(ReportsOfTwo, HistogramsAreReadWhenRowsAreMerged) {
  get("/v1/reports/day?tz=Europe/Berlin");
  EXPECT_FALSE(backend.database.reports_asked.back().is_only_database);
}

TEST_F(ReportsApi, ATimedOutReportSuggestsASmallerOne) {
  backend.database.report_error =
      Error{ErrorCode::unavailable, "canceling statement due to statement timeout", kTooSlow};
  for (const char* name : {"hour", "day", "lateness", "duration", "slo", "dead", "dead_now", "outcome", "delay",
                           "horizon", "backlog", "audit", "recent"}) {
    const Answer answer = get(std::string("/v1/reports/") + name);
    EXPECT_EQ(answer.status, 503) << name;
    EXPECT_EQ(answer.retry_after, "1") << name;
    const std::string detail = answer.body.value("detail", "");
    EXPECT_TRUE(detail.starts_with("This took too long. ")) << name << detail;
    EXPECT_NE(detail.find("of a report by type, from and to"), std::string::npos) << name << detail;
  }
}

TEST_F(ReportsOfTwo, AnUnavailableDatabaseIsNamedAsMissing) {
  backend.database_at(0).report_rows[Report::hour] = {hour_row(kSlot, "order.unpaid", 5, 1, "[]")};
  backend.silent.insert(1);
  const Answer answer = get("/v1/reports/hour");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body["items"].size(), 1U);
  EXPECT_EQ(answer.body["missing"].size(), 1U) << answer.text;
}

}  // namespace
}  // namespace tocsin
