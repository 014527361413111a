// Ids that come again, as after a restore: the sequence of a running installation is set back.
#include "integration/live_node.h"

namespace tocsin {
namespace {

class DuplicateIdsTest : public LiveNode {
 protected:
  void create_by_sql(const std::string& type, const std::string& biz_id) {
    database.query("SELECT tocsin.create_job('" + type + "', '" + biz_id + "', now(), NULL, NULL)");
  }
};

TEST_F(DuplicateIdsTest, BlockNoOutcomeOfOtherJobs) {
  put_type("hook", {{"handler", receiver.handler()}});
  put_noop("instant");
  create_by_sql("hook", "same");
  ASSERT_TRUE(eventually([&] { return count("done") == 1; }));
  const auto first = database.number("SELECT job_id FROM tocsin.job WHERE biz_id = 'same'");
  database.query("SELECT setval('tocsin.job_seq', " + std::to_string(first >> 10) + " - 1, true)");
  create_by_sql("hook", "same");
  for (int i = 0; i < 20; ++i) create_by_sql(i % 2 ? "hook" : "instant", "other-" + std::to_string(i));
  EXPECT_TRUE(eventually([&] { return count("done") == 22; })) << count("running") << " still run";
  EXPECT_EQ(database.number("SELECT count(DISTINCT job_id) FROM tocsin.job"), 22) << "both are kept";
  EXPECT_EQ(
      database.number("SELECT count(*) FROM tocsin.job WHERE biz_id = 'same' AND errors::text LIKE '%its id was " +
                      std::to_string(first) + "%'"),
      1);
  EXPECT_NE(rest().get("/metrics").text.find("tocsin_ids_given_twice_total 1"), std::string::npos);
}

TEST_F(DuplicateIdsTest, ANewNodeDrawsIdsAboveStoredOnes) {
  put_type("hook", {{"handler", receiver.handler()}});
  std::string id;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(becomes(id = create("hook", 0), "done"));
  database.query("SELECT setval('tocsin.job_seq', 1)");
  start();
  EXPECT_GT(std::stoll(create("hook", 0)), std::stoll(id));
}

// As after a promotion: callers of create_job draw without a node, so housekeeping raises the sequence.
TEST_F(DuplicateIdsTest, ANewConnectionOfHousekeepingRaisesTheSequence) {
  put_noop();
  const auto id = std::stoll(create("noop", 3'600'000));
  database.query("SELECT setval('tocsin.job_seq', 1)");
  database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tocsin housekeeping' AND "
      "datname = current_database()");
  EXPECT_TRUE(eventually([&] { return database.number("SELECT last_value FROM tocsin.job_seq") > id >> 10; }));
}

}  // namespace
}  // namespace tocsin
