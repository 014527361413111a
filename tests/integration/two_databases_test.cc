// Reports, bulk operations and the audit log over two databases on servers of their own.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "support/node_process.h"
#include "support/server.h"
#include "support/test_database.h"
#include "support/webhook_receiver.h"
#include "tocsin/shard.h"

namespace tocsin {
namespace {

constexpr const char* kAdminToken = "olgas-token-0123456789";

std::int64_t number_at(const std::string& url, const std::string& sql) {
  pqxx::connection connection(url);
  return pqxx::nontransaction(connection).exec1(sql)[0].as<std::int64_t>();
}

std::string tokens_of_two() {
  const std::string path = required_env("TOCSIN_TEST_DIR") + "/two.toml";
  std::ofstream(path) << "[[token]]\nname = \"olga\"\nrole = \"admin\"\ntoken = \"" << kAdminToken << "\"\n";
  return path;
}

class TwoDatabases : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> both{"--database", "a=" + a.url(), "--database", "b=" + b.url()};
    const Ran migrated = run_tocsin({"migrate", both[0], both[1], both[2], both[3], "--shards", "8"});
    ASSERT_EQ(migrated.exit_code, 0) << migrated.err;
    node_ = std::make_unique<NodeProcess>(
        both[1],
        std::vector<std::string>{both[2], both[3], "--heartbeat-timeout", "2s", "--token-file", tokens_of_two(),
                                 "--allow-webhook", "127.0.0.0/8"},
        kAdminToken);
    put_type("bill", {{"handler", {{"kind", "noop"}}}, {"slo", {{"lateness_ms", 60'000}, {"share", 0.9}}}});
    put_type("gone", {{"handler", receiver.handler()}});
    const Json shards = rest().get("/v1/shards").body;
    for (const Json& item : shards.at("items")) database_of_[item.at("shard")] = item.at("database");
    ASSERT_EQ(database_of_.size(), 8U);
  }
  Rest& rest() { return node_->rest(); }
  std::string log() const { return node_->log(); }
  void put_type(const std::string& name, const Json& type) {
    const Reply reply = rest().put("/v1/types/" + name, type);
    ASSERT_LT(reply.status, 300) << reply.text;
  }
  // n jobs of the type that live in this database.
  void create_at(const std::string& database, const std::string& type, int n, int delay_ms) {
    while (n > 0) {
      const std::string key = "k-" + std::to_string(++last_key_);
      if (database_of_.at(shard_of(key, 8)) != database) continue;
      const Reply reply = rest().post("/v1/jobs", {{"biz_type", type}, {"biz_id", key}, {"delay_ms", delay_ms}});
      ASSERT_EQ(reply.status, 201) << reply.text;
      --n;
    }
  }
  // Eight bills an hour ahead, three done, two jobs that died of the same reason.
  void live() {
    create_at("a", "bill", 5, 3'600'000);
    create_at("b", "bill", 3, 3'600'000);
    create_at("a", "bill", 2, 0);
    create_at("b", "bill", 1, 0);
    receiver.answer(410);
    create_at("a", "gone", 1, 0);
    create_at("b", "gone", 1, 0);
    const std::string done = "SELECT count(*) FROM tocsin.job WHERE biz_type = 'bill' AND status = 'done'";
    EXPECT_TRUE(eventually([&] { return number_at(a.url(), done) == 2 && number_at(b.url(), done) == 1; }));
  }
  // Of a column over the items of a report; -1: it was not answered, or not by both databases.
  std::int64_t sum(const std::string& report, const std::string& column, std::size_t* rows = nullptr) {
    const Reply reply = rest().get("/v1/reports/" + report);
    if (reply.status != 200 || reply.body.contains("missing")) return -1;
    std::int64_t sum = 0;
    for (const Json& item : reply.body["items"]) sum += item.at(column).get<std::int64_t>();
    if (rows) *rows = reply.body["items"].size();
    return sum;
  }
  bool becomes(const std::string& report, const std::string& column, std::int64_t wanted) {
    return eventually([&] { return sum(report, column) == wanted; });
  }
  // As housekeeping does it once a minute for each type.
  void count_horizon_anew() {
    for (const std::string& url : {a.url(), b.url()}) {
      execute(url, "UPDATE tocsin.horizon_type SET counted_at = '2000-01-01'");
      for (int type = 0; type < 2; ++type) execute(url, "SELECT tocsin.count_horizon()");
    }
  }
  Json run_bulk(const Json& request) {
    const Reply started = rest().post("/v1/bulk", request);
    EXPECT_EQ(started.status, 202) << started.text;
    Json bulk;
    EXPECT_TRUE(eventually([&] {
      bulk = rest().get("/v1/bulk/" + started.body.value("bulk_id", std::string("0"))).body;
      return bulk["state"] != "running";
    })) << bulk;
    return bulk;
  }
  void expect_done(const Json& bulk, std::int64_t changed) {
    EXPECT_EQ(bulk["state"], "done") << bulk;
    EXPECT_EQ(bulk["matched"], changed) << bulk;
    EXPECT_EQ(bulk["changed"], changed) << bulk;
    EXPECT_EQ(bulk["missed"], 0) << bulk;
  }
  // In a and in b.
  void expect_bills(const std::string& condition, std::int64_t in_a, std::int64_t in_b) {
    const std::string sql = "SELECT count(*) FROM tocsin.job WHERE biz_type = 'bill' AND " + condition;
    EXPECT_EQ(number_at(a.url(), sql), in_a) << condition;
    EXPECT_EQ(number_at(b.url(), sql), in_b) << condition;
  }

  PrivateCluster b;  // first: made while nothing else runs
  TestDatabase a{0};
  WebhookReceiver receiver;

 private:
  std::unique_ptr<NodeProcess> node_;
  std::map<int, std::string> database_of_;
  int last_key_ = 0;
};

TEST_F(TwoDatabases, ReportsAddBothUpAndSayWhichOneIsMissing) {
  live();
  for (const char* report : {"hour?type=bill", "day?type=bill", "day?type=bill&tz=Asia/Kathmandu"}) {
    EXPECT_TRUE(becomes(report, "created", 11)) << report;
    EXPECT_TRUE(becomes(report, "done", 3)) << report;
  }
  EXPECT_TRUE(becomes("lateness?type=bill", "n", 3));
  EXPECT_TRUE(becomes("outcome?type=bill", "open", 8));
  EXPECT_TRUE(becomes("delay?type=bill", "n", 11));
  EXPECT_TRUE(becomes("duration?type=gone", "n", 2));
  EXPECT_TRUE(becomes("backlog?type=bill", "due", 0));
  for (const char* deaths : {"dead?type=gone", "dead_now?type=gone"}) {
    std::size_t rows = 0;
    EXPECT_TRUE(eventually([&] { return sum(deaths, "n", &rows) == 2; })) << deaths;
    EXPECT_EQ(rows, 1U) << deaths << ": the reason is the same in both";
  }
  EXPECT_TRUE(becomes("slo?type=bill", "n", 3));
  const Json target = rest().get("/v1/reports/slo?type=bill").body["items"].at(0);
  EXPECT_EQ(target["is_met"], true) << target;
  EXPECT_EQ(target["missed"], 0) << target;
  EXPECT_TRUE(eventually([&] {
    count_horizon_anew();
    return sum("horizon?type=bill&width=hour", "n") == 8;
  }));

  b.crash();
  Reply day;
  EXPECT_TRUE(eventually([&] {
    day = rest().get("/v1/reports/day?type=bill");
    return day.status == 200 && day.body.value("missing", Json()) == Json::array({"b"});
  })) << day.text;
  EXPECT_EQ(day.body["items"].at(0)["created"], 7) << "those of a";
  EXPECT_EQ(day.body["items"].at(0)["done"], 2);
  const Json ahead = rest().get("/v1/reports/horizon?type=bill&width=hour").body;
  EXPECT_EQ(ahead.value("missing", Json()), Json::array({"b"})) << ahead;
  b.start();
  EXPECT_TRUE(becomes("day?type=bill", "created", 11));
}

TEST_F(TwoDatabases, BulkOperationsChangeBothAndTheAuditLogAddsUp) {
  live();
  const Json all = {{"biz_type", "bill"}};
  expect_bills("status = 'pending'", 5, 3);
  EXPECT_EQ(rest().post("/v1/bulk", {{"action", "cancel"}, {"filter", all}, {"dry_run", true}}).body["matched"], 8);
  expect_done(run_bulk({{"action", "reschedule"},
                        {"filter", all},
                        {"action_time", "2031-01-01T00:00:00Z"},
                        {"spread_ms", 600'000},
                        {"expected", 8},
                        {"reason", "a peak"}}),
              8);
  expect_bills("action_time >= '2031-01-01 00:00Z' AND action_time < '2031-01-01 00:10Z'", 5, 3);
  expect_done(run_bulk({{"action", "cancel"}, {"filter", all}, {"expected", 8}, {"reason", "paid"}}), 8);
  expect_bills("status = 'cancelled'", 5, 3);
  std::vector<Json> bulks;
  EXPECT_TRUE(eventually([&] {
    bulks.clear();
    const Json log = rest().get("/v1/reports/audit?limit=1000").body;
    for (const Json& item : log.at("items"))
      if (item.at("action") == "startBulk") bulks.push_back(item);
    return bulks.size() == 2;
  }));
  std::set<std::string> done;
  for (const Json& bulk : bulks) {
    EXPECT_EQ(bulk.at("actor"), "olga") << bulk;
    EXPECT_EQ(bulk.at("matched"), 8) << bulk;
    EXPECT_EQ(bulk.at("changed"), 8) << bulk;
    EXPECT_EQ(bulk.at("filter").at("biz_type"), "bill") << bulk;
    done.insert(bulk.at("filter").at("action"));
  }
  EXPECT_EQ(done, (std::set<std::string>{"cancel", "reschedule"})) << "what each of them did";
  EXPECT_TRUE(becomes("outcome?type=bill", "cancelled", 8));

  create_at("b", "bill", 1, 3'600'000);
  execute(b.url(), "ALTER TABLE tocsin.job_history ADD CONSTRAINT refuses_cancelled CHECK (status <> 3) NOT VALID");
  EXPECT_EQ(run_bulk({{"action", "cancel"}, {"filter", all}, {"expected", 1}, {"reason", "paid"}})["missed"], 1);
  EXPECT_TRUE(eventually([&] { return log().find("bulk: database invalid: b: ") != std::string::npos; })) << log();

  b.crash();
  const Reply refused = rest().post("/v1/bulk", {{"action", "cancel"}, {"filter", all}, {"dry_run", true}});
  EXPECT_EQ(refused.status, 503) << refused.text;
  EXPECT_NE(refused.text.find("database b ("), std::string::npos) << refused.text;
  b.start();
}

}  // namespace
}  // namespace tocsin
