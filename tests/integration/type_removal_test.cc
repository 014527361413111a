// DELETE of a type beside transactions that create its jobs: no job is left without its type.
#include <thread>

#include "integration/live_node.h"
#include "tocsin/shard.h"

namespace tocsin {
namespace {

constexpr const char* kCreate = "SELECT tocsin.create_job('noop', 'k', now() + '1 h')";

Json job_of_noop(const std::string& biz_id) {
  return {{"biz_type", "noop"}, {"biz_id", biz_id}, {"delay_ms", 3'600'000}};
}

class TypeRemoval : public LiveNode {
 protected:
  void SetUp() override {
    put_noop();
    shop = std::make_unique<pqxx::connection>(database.url());
  }
  int remove() { return rest().remove("/v1/types/noop").status; }

  std::unique_ptr<pqxx::connection> shop;
};

TEST_F(TypeRemoval, WaitsForATransactionThatCreatesAJob) {
  pqxx::work tx(*shop);
  tx.exec1(kCreate);
  const Reply refused = rest().remove("/v1/types/noop");
  EXPECT_EQ(refused.status, 503) << refused.text;
  EXPECT_NE(refused.text.find("transaction"), std::string::npos) << refused.text;
  EXPECT_EQ(rest().get("/v1/types/noop").status, 200);
  EXPECT_EQ(rest().post("/v1/jobs", job_of_noop("other")).status, 201) << "and goes on to take jobs";
  tx.commit();
  EXPECT_EQ(remove(), 409);
  for (const char* key : {"k", "other"}) rest().post("/v1/jobs/cancel", {{"biz_id", key}});
  EXPECT_EQ(remove(), 200);
}

// As if a removal had begun, and waited for older transactions.
TEST_F(TypeRemoval, ACreateDuringARemovalLocksTheType) {
  database.query("UPDATE tocsin.biz_type SET removal_at = clock_timestamp()");
  pqxx::work tx(*shop);
  tx.exec1(kCreate);
  EXPECT_THROW(database.query("SELECT FROM tocsin.biz_type FOR UPDATE NOWAIT"), pqxx::sql_error);
  EXPECT_EQ(rest().post("/v1/jobs", job_of_noop("other")).status, 201) << "creates do not lock each other out";
  tx.commit();
  EXPECT_EQ(remove(), 409);
}

TEST_F(TypeRemoval, IsSeenByATransactionThatKeepsItsSnapshot) {
  pqxx::transaction<pqxx::isolation_level::repeatable_read> tx(*shop);
  tx.exec1("SELECT 1");
  ASSERT_EQ(remove(), 200);
  EXPECT_THROW(tx.exec1(kCreate), pqxx::serialization_failure);
}

// The node has not heard of the removal: as when another node removed the type a moment ago.
TEST_F(TypeRemoval, ACreateAfterItIsRefused) {
  database.query("UPDATE tocsin.biz_type SET removed_at = clock_timestamp()");
  const Reply refused = rest().post("/v1/jobs", job_of_noop("k"));
  EXPECT_EQ(refused.status, 422) << refused.text;
  EXPECT_EQ(refused.body.value("field", ""), "biz_type") << refused.text;
  EXPECT_NE(refused.text.find("noop"), std::string::npos) << refused.text;
  const Reply batch = rest().post("/v1/jobs/batch", {{"jobs", {job_of_noop("k"), job_of_noop("l")}}});
  EXPECT_EQ(batch.status, 422) << batch.text;
  EXPECT_EQ(batch.body.value("field", ""), "jobs[0].biz_type") << batch.text;
  put_noop("other");
  Json live = job_of_noop("k"), keyed = job_of_noop("l");
  live["biz_type"] = keyed["biz_type"] = "other";
  keyed["idempotency_key"] = "key";
  const Reply mixed = rest().post("/v1/jobs/batch", {{"jobs", {live, job_of_noop("k"), keyed}}});
  EXPECT_EQ(mixed.status, 422) << mixed.text;
  EXPECT_EQ(mixed.body.value("field", ""), "jobs[1].biz_type") << mixed.text;
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_live"), 0);
}

TEST_F(TypeRemoval, RacingCreatesLeaveNoJobWithoutItsType) {
  for (int round = 0; round < 20; ++round) {
    put_noop();
    std::vector<std::thread> creators;
    for (int i = 0; i < 4; ++i)
      creators.emplace_back([this, round, i] {
        rest().post("/v1/jobs", job_of_noop("k-" + std::to_string(round) + "-" + std::to_string(i)));
      });
    const int status = remove();
    for (std::thread& creator : creators) creator.join();
    EXPECT_TRUE(status == 200 || status == 409 || status == 503) << status;
    EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_live j JOIN tocsin.biz_type t USING (type_id) "
                              "WHERE t.removed_at IS NOT NULL"),
              0)
        << "answered " << status;
  }
}

class TypeRemovalInTwoDatabases : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> both{"--database", "a=" + a.url(), "--database", "b=" + b.url()};
    const Ran migrated = run_tocsin({"migrate", both[0], both[1], both[2], both[3], "--shards", "8"});
    ASSERT_EQ(migrated.exit_code, 0) << migrated.err;
    node = std::make_unique<NodeProcess>(both[1], std::vector<std::string>{both[2], both[3]});
    ASSERT_LT(rest().put("/v1/types/noop", {{"handler", {{"kind", "noop"}}}}).status, 300);
    const Json shards = rest().get("/v1/shards").body;
    std::map<int, std::string> database_of;
    for (const Json& item : shards.at("items")) database_of[item.at("shard")] = item.at("database");
    for (int i = 0; key_of_b.empty(); ++i)
      if (database_of.at(shard_of("k-" + std::to_string(i), 8)) == "b") key_of_b = "k-" + std::to_string(i);
  }
  Rest& rest() { return node->rest(); }
  int remove() { return rest().remove("/v1/types/noop").status; }

  TestDatabase a{0}, b{0};
  std::unique_ptr<NodeProcess> node;
  std::string key_of_b;  // a biz_id whose jobs live in b
};

TEST_F(TypeRemovalInTwoDatabases, ARefusedRemovalLeavesTheTypeAsItWas) {
  ASSERT_EQ(rest().post("/v1/jobs", job_of_noop(key_of_b)).status, 201);
  EXPECT_EQ(remove(), 409) << "a live job in b";
  rest().post("/v1/jobs/cancel", {{"biz_id", key_of_b}});
  pqxx::connection shop(b.url());
  pqxx::work tx(shop);
  tx.exec1("SELECT tocsin.create_job('noop', '" + key_of_b + "', now() + '1 h')");
  EXPECT_EQ(remove(), 503) << "an open transaction in b";
  tx.commit();
  EXPECT_EQ(remove(), 409);
  // In a the copy's removal had begun, or the type itself was asked last.
  EXPECT_TRUE(eventually([&] { return rest().post("/v1/jobs", job_of_noop(key_of_b)).status == 201; }));
  rest().post("/v1/jobs/cancel", {{"biz_id", key_of_b}});
  EXPECT_EQ(remove(), 200);
  EXPECT_EQ(rest().post("/v1/jobs", job_of_noop(key_of_b)).status, 422);
}

TEST_F(TypeRemovalInTwoDatabases, ACopyIsWrittenAgainWhenTheControlDatabaseRefuses) {
  std::string key_of_a;
  const Json shards = rest().get("/v1/shards").body;
  for (int i = 0; key_of_a.empty(); ++i)
    for (const Json& item : shards.at("items"))
      if (item.at("database") == "a" && item.at("shard") == shard_of("k-" + std::to_string(i), 8))
        key_of_a = "k-" + std::to_string(i);
  ASSERT_EQ(rest().post("/v1/jobs", job_of_noop(key_of_a)).status, 201);
  EXPECT_EQ(remove(), 409);
  EXPECT_TRUE(eventually([&] { return rest().post("/v1/jobs", job_of_noop(key_of_b)).status == 201; }));
  pqxx::connection shop(b.url());
  EXPECT_TRUE(pqxx::nontransaction(shop)
                  .exec1("SELECT removed_at IS NULL FROM tocsin.biz_type WHERE name = 'noop'")[0]
                  .as<bool>());
}

}  // namespace
}  // namespace tocsin
