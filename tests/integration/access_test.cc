// Who may call what, over the wire.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/node_process.h"
#include "support/temp_file.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class Access : public ::testing::Test {
 protected:
  static std::string token_of(const std::string& role) { return role + "-token-0123456789"; }
  static std::string token_file() {
    const std::string path = required_env("TOCSIN_TEST_DIR") + "/roles.toml";
    std::ofstream file(path);
    for (const auto& [name, role] : {std::pair("admin", "admin"),
                                     {"producer", "producer"},
                                     {"other producer", "producer"},
                                     {"consumer", "consumer"},
                                     {"viewer", "viewer"}}) {
      file << "[[token]]\nname = \"" << name << "\"\nrole = \"" << role << "\"\ntoken = \"" << token_of(name) << "\"\n";
    }
    return path;
  }
  Rest as(const std::string& role) const { return Rest(node.port(), token_of(role)); }

  TestDatabase database{8};
  mutable NodeProcess node{database.url(), {"--token-file", token_file()}, token_of("admin")};
};

TEST_F(Access, WithoutATokenOnlyProbesAreAnswered) {
  Rest nobody(node.port()), liar(node.port(), "guess-0123456789abcdef");
  for (Rest* rest : {&nobody, &liar}) {
    EXPECT_EQ(rest->get("/healthz").status, 200);
    EXPECT_EQ(rest->get("/readyz").body, Json({{"status", "ready"}})) << "no names of databases";
    EXPECT_EQ(rest->get("/v1/stats").status, 401);
    EXPECT_EQ(rest->get("/v1/jobs/1").status, 401);
    EXPECT_EQ(rest->post("/v1/jobs", {{"biz_type", "noop"}, {"biz_id", "a"}, {"delay_ms", 1}}).status, 401);
    EXPECT_EQ(rest->put("/v1/types/noop", {{"handler", {{"kind", "noop"}}}}).status, 401);
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.biz_type"), 0);
  EXPECT_TRUE(as("viewer").get("/readyz").body.contains("checks"));
}

TEST_F(Access, EveryRoleHasExactlyItsRights) {
  const Json type{{"handler", {{"kind", "noop"}}}};
  for (const char* role : {"producer", "consumer", "viewer"})
    EXPECT_EQ(as(role).put("/v1/types/noop", type).status, 403) << role;
  EXPECT_EQ(as("admin").put("/v1/types/noop", type).status, 201);

  const Json job{{"biz_type", "noop"}, {"biz_id", "a"}, {"delay_ms", 3'600'000}};
  for (const char* role : {"consumer", "viewer"}) EXPECT_EQ(as(role).post("/v1/jobs", job).status, 403) << role;
  for (const char* role : {"admin", "producer"}) EXPECT_EQ(as(role).post("/v1/jobs", job).status, 201) << role;
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 2);

  const std::string id = database.query("SELECT min(job_id) FROM tocsin.job")[0][0].as<std::string>();
  for (const char* role : {"admin", "producer", "consumer", "viewer"})
    EXPECT_EQ(as(role).get("/v1/jobs/" + id).status, 200) << role;
  EXPECT_EQ(as("viewer").post("/v1/jobs/" + id + "/cancel").status, 403);
  EXPECT_EQ(as("admin").put("/v1/types/pull", {{"handler", {{"kind", "pull"}}}}).status, 201);
  for (const auto& [role, status] : {std::pair("viewer", 403), {"producer", 403}, {"consumer", 200}, {"admin", 200}}) {
    EXPECT_EQ(as(role).post("/v1/types/pull/lease", {{"max", 1}}).status, status) << role;
    EXPECT_EQ(as(role).post("/v1/leases/ack", {{"items", Json::array()}}).status, status) << role;
  }
  EXPECT_EQ(as("viewer").post("/v1/types/noop/pause").status, 403);
  EXPECT_EQ(as("producer").post("/v1/jobs/" + id + "/cancel").status, 200);
}

TEST_F(Access, TokensOfOneRoleShareTheJobsOfEveryType) {
  for (const char* type : {"shop.order", "desk.ticket"}) {
    ASSERT_EQ(as("admin").put("/v1/types/" + std::string(type), {{"handler", {{"kind", "noop"}}}}).status, 201);
    const Reply made = as("producer").post("/v1/jobs", {{"biz_type", type}, {"biz_id", "a"}, {"delay_ms", 3'600'000}});
    ASSERT_EQ(made.status, 201) << made.text;
    const std::string path = "/v1/jobs/" + made.body["job_id"].get<std::string>();
    EXPECT_EQ(as("other producer").get(path).body["biz_type"], type);
    EXPECT_EQ(as("other producer").post(path + "/cancel").status, 200) << type;
  }
}

// What docs/security.md says that the log tells.
TEST(Log, TellsStartsShardsFailuresAndStops) {
  TestDatabase database(8);
  NodeProcess node(database.url());
  EXPECT_TRUE(eventually([&] { return node.log().find("scans 8 shards") != std::string::npos; })) << node.log();
  database.query("ALTER TABLE tocsin.node RENAME TO hidden");
  EXPECT_TRUE(eventually([&] { return node.log().find("\"tocsin.node\" does not exist") != std::string::npos; }))
      << node.log();
  database.query("ALTER TABLE tocsin.hidden RENAME TO node");
  EXPECT_TRUE(eventually([&] { return node.is_ready(); }));
  EXPECT_EQ(node.stop(), 0);
  const std::string log = node.log();
  for (const char* told : {" serves ", "draining", "stopped"}) EXPECT_NE(log.find(told), std::string::npos) << log;
}

// What docs/security.md says that no log holds, through calls that succeed, are refused and fail.
TEST(Log, HoldsNoSecretsKeysOrAttributes) {
  TestDatabase database(8);
  std::string url = database.url();
  url.replace(url.find("postgres@"), 8, "postgres:hidden-password");
  const std::string token = "hidden-token-0123456789";
  const TokenFile file(token);
  NodeProcess node(url, {"--token-file", file.path(), "--allow-webhook", "127.0.0.0/8", "--log-level", "trace"}, token);
  const Json hook = {{"kind", "webhook"},
                     {"url", "http://127.0.0.1:1/hidden-path"},
                     {"secret", "whsec_aGlkZGVuLXNlY3JldC0wMTIzNDU2Nzg5MDEyMzQ1"},
                     {"headers", {{"authorization", "hidden-header"}}}};
  EXPECT_EQ(node.rest().put("/v1/types/hook", {{"handler", hook}, {"max_attempts", 1}}).status, 201);
  const Json exit = {{"kind", "amqp"}, {"url", "amqp://user:hidden-login@127.0.0.1:1/"}, {"routing_key", "r"}};
  node.rest().put("/v1/types/exit", {{"handler", exit}, {"max_attempts", 1}});  // where this build has the broker
  const auto job = [](const std::string& type) {
    return Json{{"biz_type", type},
                {"biz_id", "hidden-business-key"},
                {"delay_ms", 0},
                {"idempotency_key", "hidden-key-of-" + type},
                {"attribute", {{"a", "hidden-attribute"}}}};
  };
  EXPECT_EQ(node.rest().post("/v1/jobs", job("hook")).status, 201);
  node.rest().post("/v1/jobs", job("exit"));
  EXPECT_EQ(Rest(node.port(), "hidden-guess-0123456789").post("/v1/jobs", job("hook")).status, 401);
  EXPECT_TRUE(eventually(
      [&] { return database.number("SELECT count(*) FROM tocsin.job WHERE status IN ('pending', 'running')") == 0; }));
  EXPECT_GT(database.number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = "
                            "current_database() AND application_name LIKE 'tocsin%'"),
            0);
  EXPECT_TRUE(eventually([&] { return node.is_ready(); }));
  // A row that the database refuses: its error has the whole row.
  database.query("ALTER TABLE tocsin.job_history_done ADD CONSTRAINT refuses_rows CHECK (biz_id NOT LIKE 'hidden%')");
  EXPECT_EQ(node.rest().put("/v1/types/plain", {{"handler", {{"kind", "noop"}}}}).status, 201);
  EXPECT_EQ(node.rest().post("/v1/jobs", job("plain")).status, 201);
  EXPECT_TRUE(eventually([&] { return node.log().find("refuses_rows") != std::string::npos; })) << node.log();
  database.query("ALTER TABLE tocsin.job_history_done DROP CONSTRAINT refuses_rows");
  EXPECT_EQ(node.stop(), 0);
  const std::string log = node.log();
  EXPECT_NE(log.find("draining"), std::string::npos) << log;
  for (const char* secret : {"hidden", "whsec_aGlk"}) EXPECT_EQ(log.find(secret), std::string::npos) << log;
}

}  // namespace
}  // namespace tocsin
