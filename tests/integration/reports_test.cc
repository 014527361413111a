// Reports of a whole node: from jobs to views, REST and the command line.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "integration/live_node.h"
#include "support/process.h"

namespace tocsin {
namespace {

std::string page_of(const std::string& name) {
  const auto root = std::filesystem::path(required_env("TOCSIN_POSTGRES_SH")).parent_path().parent_path();
  std::ifstream file(root / "docs" / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The questions of a page and the statement that answers each.
std::vector<std::pair<std::string, std::string>> questions_of(const std::string& page) {
  std::vector<std::pair<std::string, std::string>> found;
  const std::string open = "```sql\n";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const std::size_t heading = page.rfind("\n## ", at) + 4;
    const std::size_t begin = at + open.size();
    found.emplace_back(page.substr(heading, page.find('\n', heading) - heading),
                       page.substr(begin, page.find("```", begin) - begin));
  }
  return found;
}

class Reports : public LiveNode {
 protected:
  // Three paid orders, one unpaid, one that died, one that is open; and all of it in the report tables.
  void live() {
    put_type("order.unpaid", {{"handler", {{"kind", "noop"}}}, {"slo", {{"lateness_ms", 60000}, {"share", 0.9}}}});
    put_type("ticket.untouched", {{"handler", receiver.handler()}, {"slo", {{"lateness_ms", 0}, {"share", 1}}}});
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(rest().post("/v1/jobs/" + create("order.unpaid", 3'600'000) + "/cancel").status, 200);
    EXPECT_TRUE(becomes(create("order.unpaid", 0), "done"));
    create("order.unpaid", 48 * 3'600'000);
    receiver.answer(410);
    EXPECT_TRUE(becomes(create("ticket.untouched", 0), "dead"));
  }
  void end_node() { EXPECT_EQ(node().stop(), 0); }
  // Six jobs in 28 days, in the hours in which they were created: one, unless a new hour began meanwhile.
  void expect_busiest_hours(const pqxx::result& answer) {
    std::map<int, double> hours;
    for (const auto& row : answer) hours[row["hour"].as<int>()] = row["created_per_day"].as<double>();
    std::map<int, double> expected;
    for (const auto& row : database.query("SELECT extract(hour FROM gmt_create AT TIME ZONE 'Europe/Berlin'), count(*) "
                                          "FROM tocsin.job WHERE biz_id LIKE 'key-%' GROUP BY 1"))
      expected[row[0].as<int>()] = row[1].as<double>() / 28;
    ASSERT_EQ(hours.size(), expected.size());
    for (const auto& [hour, per_day] : expected) EXPECT_NEAR(hours[hour], per_day, 1e-6) << hour;
  }
  // Two jobs have started, each of a type of its own; a histogram is right within 4 %.
  void expect_lateness(const pqxx::result& answer) {
    ASSERT_EQ(answer.size(), 2);
    EXPECT_GE(answer[0]["p99_ms"].as<double>(), answer[1]["p99_ms"].as<double>()) << "the latest first";
    for (const auto& row : answer) {
      const auto start = database.query(
          "SELECT date_trunc('hour', started_at, 'UTC') AS slot, extract(epoch FROM started_at - action_time) * 1000 "
          "AS ms FROM tocsin.job WHERE started_at IS NOT NULL AND biz_type = '" +
          row["biz_type"].as<std::string>() + "'");
      ASSERT_EQ(start.size(), 1) << row["biz_type"].c_str();
      EXPECT_STREQ(row["slot"].c_str(), start[0]["slot"].c_str());
      EXPECT_EQ(row["n"].as<int>(), 1);
      const double ms = start[0]["ms"].as<double>();
      for (const char* column : {"p50_ms", "p99_ms", "max_ms"})
        EXPECT_NEAR(row[column].as<double>(), ms, 0.04 * ms + 0.1) << column;
    }
  }
};

TEST_F(Reports, EveryRequestOfTheDashboardIsAnswered) {
  live();
  end_node();  // which writes what its last ten seconds have brought
  database.query(
      "INSERT INTO tocsin.horizon_slot SELECT 'hour', ((now() AT TIME ZONE 'Europe/Berlin')::date + 1 + time '09:00') "
      "AT TIME ZONE 'Europe/Berlin', type_id, 5, 4, 6, false, now() FROM tocsin.biz_type");
  database.query(
      "INSERT INTO tocsin.audit_log (actor, role, action, target) VALUES ('ops', 'admin', 'putType', 'order.unpaid')");
  database.query(
      "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
      "max_attempts, biz_id) SELECT 1024 * 1000000, now(), now(), now(), now(), type_id, 0, 16, 'b' FROM "
      "tocsin.biz_type WHERE name = 'order.unpaid'");
  const auto questions = questions_of(page_of("reports.md"));
  ASSERT_EQ(questions.size(), 12U);
  pqxx::connection connection(database.url());
  std::map<std::string, pqxx::result> answers;
  for (const auto& [question, sql] : questions) {
    pqxx::work tx(connection);
    tx.exec("SET LOCAL ROLE tocsin_report");
    EXPECT_NO_THROW(answers[question] = tx.exec(sql)) << question;
    EXPECT_FALSE(answers[question].empty()) << question;
  }
  const auto cell = [&](const std::string& question, const std::string& column) {
    return std::string(answers.at(question)[0][column].c_str());
  };
  expect_busiest_hours(answers.at("Which hours of the day are the busiest?"));
  expect_lateness(answers.at("How late did jobs start in the last day?"));
  EXPECT_EQ(cell("Which share of orders was paid before its timeout, by week?", "paid_percent"), "75.0");
  EXPECT_EQ(cell("What is due tomorrow between 9 and 10 in Berlin?", "due"), "5");
  EXPECT_EQ(cell("Which type misses its target?", "biz_type"), "ticket.untouched");
  EXPECT_EQ(cell("How many jobs were created and finished on each day in Berlin?", "created"), "6");
  EXPECT_EQ(cell("How many jobs were created and finished on each day in Berlin?", "cancelled"), "3");
  EXPECT_NE(cell("Why did jobs die this month?", "reason").find("410"), std::string::npos);
  EXPECT_EQ(cell("Which share of deadlines is set more than a day and a half ahead?", "percent_over_36_hours"), "20.0");
  EXPECT_EQ(cell("Which handlers are slow, and which fail?", "outcome"), "dead");
  EXPECT_EQ(cell("What waits right now, and for what?", "due"), "1");
  EXPECT_EQ(cell("How many attempts does a finished job take?", "attempts_per_job"), "1.00");
  EXPECT_EQ(cell("Who changed what in the last day?", "actor"), "ops");
}

TEST_F(Reports, TomorrowIsCorrectWhenSummerTimeChanges) {
  put_type("order.unpaid", {{"handler", {{"kind", "noop"}}}});
  end_node();
  const auto questions = questions_of(page_of("reports.md"));
  const auto tomorrow = std::ranges::find(questions, "What is due tomorrow between 9 and 10 in Berlin?",
                                          &std::pair<std::string, std::string>::first);
  ASSERT_NE(tomorrow, questions.end());
  // The night before, and 9 o'clock of the day of the change.
  const std::map<std::string, std::string> changes = {{"2026-03-28 12:00Z", "2026-03-29 07:00Z"},
                                                      {"2026-10-24 12:00Z", "2026-10-25 08:00Z"}};
  for (const auto& [now, nine] : changes) {
    database.query("INSERT INTO tocsin.horizon_slot SELECT 'hour', '" + nine +
                   "', type_id, 5, 4, 6, false, now() FROM tocsin.biz_type");
    const std::string sql = std::regex_replace(tomorrow->second, std::regex(R"(now\(\))"), "timestamptz '" + now + "'");
    EXPECT_EQ(database.query(sql).size(), 1) << now;
  }
}

TEST_F(Reports, RestAndTheCommandLineAgree) {
  live();
  ASSERT_TRUE(eventually([&] {
    const Reply reply = rest().get("/v1/reports/hour?type=order.unpaid");
    return reply.status == 200 && !reply.body["items"].empty() && reply.body["items"][0]["done"] == 1 &&
           reply.body["items"][0]["cancelled"] == 3;
  }));
  for (const char* name :
       {"hour", "day", "lateness", "duration", "slo", "dead", "outcome", "delay", "horizon", "backlog", "audit"}) {
    const Reply reply = rest().get(std::string("/v1/reports/") + name);
    EXPECT_EQ(reply.status, 200) << name << reply.text;
    const Reply zone = rest().get(std::string("/v1/reports/") + name + "?tz=Nowhere/City");
    EXPECT_EQ(zone.status, 422) << name << zone.text;
    EXPECT_EQ(zone.body.value("field", ""), "tz") << name;
  }
  const Reply day = rest().get("/v1/reports/day?tz=Asia/Kathmandu&type=order.unpaid");
  ASSERT_EQ(day.body["items"].size(), 1U) << day.text;
  EXPECT_EQ(day.body["items"][0]["created"], 5);
  EXPECT_EQ(rest().get("/v1/reports/day?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z").body["items"].size(), 0U);

  const std::string url = "http://127.0.0.1:" + std::to_string(node().port());
  const Ran csv = run_tocsin({"report", "outcome", "--csv", "--url", url});
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_EQ(csv.out.substr(0, csv.out.find("\r\n")), "created_day,biz_type,created,done,cancelled,dead,open");
  EXPECT_NE(csv.out.find(",order.unpaid,5,1,3,0,1\r\n"), std::string::npos) << csv.out;
  const Ran json = run_tocsin({"report", "hour", "--type", "order.unpaid", "--json", "--url", url});
  EXPECT_EQ(Json::parse(json.out)["items"].size(), 1U) << json.out;
  EXPECT_EQ(run_tocsin({"report", "nonsense", "--url", url}).exit_code, 2);
  const std::vector<std::string> of_nothing = {
      "report", "hour", "--from", "2001-01-01T00:00:00Z", "--to", "2001-01-02T00:00:00Z", "--url", url};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return run_tocsin(words);
  };
  EXPECT_EQ(with(of_nothing, {"--csv"}).out,
            "slot,biz_type,created,done,cancelled,dead,dropped_late,revived,attempts,retried,p50_ms,p90_ms,p99_ms,"
            "max_ms\r\n");
  EXPECT_EQ(with(of_nothing, {}).out,
            "nothing in this range: 0 created, 0 done, 0 cancelled, 0 dead, 0 dropped late,\n0 revived, 0 attempts, 0 "
            "retried\n");
  const Ran nowhere = with(of_nothing, {"--tz", "Mars/Olympus1"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_NE(nowhere.err.find("There is no such time zone"), std::string::npos) << nowhere.err;
  const Ran untyped = with(of_nothing, {"--type", "nobody"});
  EXPECT_EQ(untyped.exit_code, 1);
  EXPECT_NE(untyped.err.find("nobody"), std::string::npos) << untyped.err;

  const Ran top = run_tocsin({"top", "--once", "--url", url});
  EXPECT_EQ(top.exit_code, 0) << top.err;
  EXPECT_NE(top.out.find("order.unpaid"), std::string::npos) << top.out;
  std::istringstream lines(top.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(Reports, TheOverviewNamesProblems) {
  put_noop("paused");
  EXPECT_EQ(rest().post("/v1/types/paused/pause").status, 200);
  create("paused", 0);
  Reply reply;
  ASSERT_TRUE(eventually([&] {
    reply = rest().get("/v1/overview");
    return reply.status == 200 && reply.body["totals"]["pending"] == 1;
  })) << reply.text;
  EXPECT_EQ(reply.body["verdict"], "ok") << "a paused type is not behind: " << reply.text;
  EXPECT_EQ(reply.body["paused"][0]["biz_type"], "paused");
  EXPECT_EQ(reply.body["due"]["now"], 1);
  EXPECT_EQ(reply.body["worst"][0]["waits_for"], "paused");
}

}  // namespace
}  // namespace tocsin
