// GET /v1/overview
#include "support/api_fixture.h"

namespace tocsin {
namespace {

class OverviewApi : public ApiTest {
 protected:
  // The remedy for a type whose oldest due job has waited for two minutes.
  std::string remedy(const std::string& waits_for) {
    backend.database.report_rows[Report::backlog] = {Json{
        {"biz_type", "order.unpaid"},
        {"due", 5},
        {"is_exact", true},
        {"oldest_age_ms", 120'000.0},
        {"waits_for", waits_for}}.dump()};
    const Answer answer = get("/v1/overview");
    EXPECT_EQ(answer.status, 200) << answer.text;
    for (const Json& reason : answer.body["reasons"])
      if (reason["code"] == "behind") return reason["remedy"];
    return "";
  }
};

TEST_F(OverviewApi, TheRemedyNamesWhatATypeWaitsFor) {
  EXPECT_NE(remedy("max_running").find("max_running"), std::string::npos);
  EXPECT_NE(remedy("rate_per_s").find("rate_per_s"), std::string::npos);
  EXPECT_NE(remedy("catch_up").find("catch_up.rate_per_s"), std::string::npos);
  EXPECT_NE(remedy("workers").find("More is due than its handler takes"), std::string::npos);
  backend.hold = "its endpoint http://shop has not answered for a while and is left alone for another 900 ms";
  EXPECT_EQ(remedy("workers"), "Here it waits because " + backend.hold + ".");
  EXPECT_EQ(remedy("rate_per_s"), "Here it waits because " + backend.hold + ".");
}

TEST_F(OverviewApi, ATypeWithoutConsumersIsNotSlow) {
  backend.add_type("order.unpaid", R"({"kind":"pull"})");
  EXPECT_NE(remedy("consumers").find("consumers"), std::string::npos);
  backend.hold = "no consumer asks this node for jobs of its type";
  EXPECT_NE(remedy("consumers").find("no consumer asks"), std::string::npos);
}

TEST_F(OverviewApi, JobsDueInTheNextHourAreOneNumber) {
  EXPECT_EQ(get("/v1/overview").body["due"]["next_hour"], nullptr) << "not counted yet";
  backend.database.report_rows[Report::next] = {R"({"biz_type":null,"n":3600})"};
  EXPECT_EQ(get("/v1/overview").body["due"]["next_hour"], 3600);
}

TEST_F(OverviewApi, TheNextHourHasAtLeastWhatTheNextMinuteHas) {
  backend.database.report_rows[Report::next] = {R"({"biz_type":null,"n":0})"};
  post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"new","delay_ms":30000})");
  const Json due = get("/v1/overview").body["due"];
  EXPECT_EQ(due["next_minute"], 1);
  EXPECT_EQ(due["next_hour"], 1);
}

TEST_F(OverviewApi, ATypeWhoseJobsDieIsNotOk) {
  const auto verdict = [&](int done, int dead) {
    backend.database.report_rows[Report::recent] = {
        Json{{"biz_type", "order.unpaid"}, {"done", done}, {"dead", dead}, {"n", done + dead}, {"missed", 0}}.dump()};
    return get("/v1/overview").body;
  };
  EXPECT_EQ(verdict(1000, 9)["verdict"], "ok") << "single deaths are no reason for alarm";
  EXPECT_EQ(verdict(9, 9)["verdict"], "ok");
  EXPECT_EQ(verdict(0, 2)["verdict"], "ok");
  EXPECT_EQ(verdict(0, 3)["verdict"], "late") << "none was done";
  EXPECT_EQ(verdict(11, 10)["verdict"], "ok");
  const Json dying = verdict(10, 10);
  EXPECT_EQ(dying["verdict"], "late");
  EXPECT_EQ(dying["reasons"][0]["code"], "dying");
  const auto text = dying["reasons"][0]["text"].get<std::string>();
  EXPECT_NE(text.find("20 ends of its jobs, 10 were deaths"), std::string::npos) << text;
}

TEST_F(OverviewApi, JobsDroppedTooLateDoNotCountAsHandlerFailures) {
  const auto remedy_of = [&](int dropped_late) {
    backend.database.report_rows[Report::recent] = {Json{
        {"biz_type", "order.unpaid"},
        {"done", 0},
        {"dead", 20},
        {"dropped_late", dropped_late},
        {"n", 0},
        {"missed", 0}}.dump()};
    return get("/v1/overview").body["reasons"][0]["remedy"].get<std::string>();
  };
  EXPECT_NE(remedy_of(10).find("handler"), std::string::npos);
  EXPECT_NE(remedy_of(11).find("drop_older_than_ms"), std::string::npos);
}

TEST_F(OverviewApi, ATypeWhoseAttemptsFailIsNotOk) {
  const auto verdict = [&](int done, int retried) {
    backend.database.report_rows[Report::recent] = {
        Json{{"biz_type", "order.unpaid"}, {"done", done}, {"dead", 0}, {"n", 0}, {"missed", 0}, {"retried", retried}}
            .dump()};
    return get("/v1/overview").body;
  };
  EXPECT_EQ(verdict(0, 9)["verdict"], "ok") << "few failures are no reason for alarm";
  EXPECT_EQ(verdict(10, 10)["verdict"], "ok");
  const Json failing = verdict(9, 10);
  EXPECT_EQ(failing["verdict"], "late");
  EXPECT_EQ(failing["reasons"][0]["code"], "failing");
  EXPECT_NE(failing["reasons"][0]["text"].get<std::string>().find("10 attempts"), std::string::npos);
  EXPECT_NE(failing["reasons"][0]["remedy"].get<std::string>().find("repair its handler"), std::string::npos);
  EXPECT_EQ(failing["worst"][0]["retried"], 10);
  post("/v1/types/order.unpaid/pause");
  EXPECT_EQ(verdict(9, 10)["verdict"], "ok") << "somebody knows of it";
}

TEST_F(OverviewApi, ACountThatEndsAtItsCapIsMarkedForItsType) {
  post("/v1/types/order.unpaid/pause");
  const auto overview = [&](bool is_exact) {
    backend.database.report_rows[Report::backlog] = {Json{
        {"biz_type", "order.unpaid"},
        {"due", 2000},
        {"is_exact", is_exact},
        {"oldest_age_ms", 120'000.0},
        {"waits_for", "paused"}}.dump()};
    return get("/v1/overview").body;
  };
  const Json part = overview(false), whole = overview(true);
  EXPECT_EQ(part["worst"][0]["is_due_exact"], false);
  EXPECT_EQ(whole["worst"][0]["is_due_exact"], true);
  EXPECT_EQ(part["paused"][0]["due"], 2000);
  EXPECT_EQ(part["paused"][0]["is_exact"], false);
  EXPECT_EQ(whole["paused"][0]["is_exact"], true);
}

TEST_F(OverviewApi, APausedTypeIsNotBehind) {
  post("/v1/types/order.unpaid/pause");
  EXPECT_EQ(remedy("paused"), "");
}

}  // namespace
}  // namespace tocsin
