// The horizon: what is due when, counted in the background, one type at a time. On PostgreSQL alone.
#include <gtest/gtest.h>

#include "contract/report_tables.h"

namespace tocsin {
namespace {

class Horizon : public ReportTables {
 protected:
  void make_countable() { database.query("UPDATE tocsin.horizon_type SET counted_at = '2020-01-01'"); }
  std::int64_t most_rows() { return database.number("SELECT most_rows FROM tocsin.horizon_type"); }
  // 100 jobs 30 hours ahead in the first of eight shards, 50 more in each next one; all of them are too many to be
  // read.
  std::int64_t fill_unequal_shards() {
    database.query(
        "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
        "max_attempts, biz_id) SELECT i * 1024 + s, now() + interval '30 hours', now() + interval '30 hours', now(), "
        "now(), " +
        std::to_string(type_id) + ", s, 16, s || '-' || i FROM generate_series(0, 7) s, " +
        "generate_series(1, 100 + 50 * s) i");
    const std::string all = "SELECT count(*) FROM tocsin.job_live", type = std::to_string(type_id);
    database.query("INSERT INTO tocsin.job_count_delta (type_id, status, n) SELECT " + type + ", 0, (" + all + ")");
    database.query("INSERT INTO tocsin.horizon_type SELECT " + type + ", '2020-01-01', (" + all + ")");
    return database.number(all);
  }
};

TEST_F(Horizon, ATimeOutKeepsTheOldCountAndMakesTheSampleSmaller) {
  create("a", std::chrono::hours(30));
  ASSERT_TRUE(must(maintenance.count_horizon()));
  create("b", std::chrono::hours(30));
  make_countable();
  const auto slots = [&] {
    return std::string(
        database.query("SELECT string_agg(h::text, ' ' ORDER BY width, slot) FROM tocsin.horizon_slot h")[0][0]
            .c_str());
  };
  const std::string before = slots();
  PgMaintenance hurried(session, std::chrono::milliseconds(1));
  pqxx::connection connection(database.url());
  {
    pqxx::work other(connection);
    other.exec("LOCK TABLE tocsin.horizon_slot IN SHARE ROW EXCLUSIVE MODE");  // so that the count cannot end in time
    EXPECT_TRUE(must(hurried.count_horizon())) << "another type may be counted at once";
  }
  EXPECT_EQ(slots(), before);
  EXPECT_EQ(most_rows(), 50'000) << "a quarter of the usual";
  EXPECT_FALSE(must(maintenance.count_horizon())) << "not at once after a time-out";
  make_countable();
  EXPECT_TRUE(must(maintenance.count_horizon()));
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.horizon WHERE width = 'hour'"), 2);
  EXPECT_EQ(most_rows(), 50'000);
}

TEST_F(Horizon, ASampleHasAThousandRowsOfATypeAtLeast) {
  create("a", std::chrono::hours(30));
  ASSERT_TRUE(must(maintenance.count_horizon()));
  for (const int rows : {50'000, 12'500, 3'125, 1'000, 1'000}) {
    make_countable();
    database.query("SELECT tocsin.shrink_horizon()");
    EXPECT_EQ(most_rows(), rows);
  }
}

TEST_F(Horizon, OneNodeCountsAndAnotherDoesNotWait) {
  create("a", std::chrono::hours(30));
  pqxx::connection connection(database.url());
  {
    pqxx::work other(connection);
    other.exec("SELECT pg_advisory_xact_lock(hashtextextended('tocsin.count_horizon', 0))");
    EXPECT_FALSE(must(maintenance.count_horizon()));
    EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.horizon_slot"), 0);
    EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.horizon_type"), 0);
  }
  EXPECT_TRUE(must(maintenance.count_horizon()));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.horizon_slot"), 2);
}

// Of the 70 samples of four of these shards 68 have the truth in their bounds, as promised. If shards were taken for
// equal, 8 would.
TEST_F(Horizon, TheTruthLiesInTheBoundsOfASampleOfUnequalShards) {
  const std::string truth = std::to_string(fill_unequal_shards());
  int held = 0;
  constexpr int kSamples = 100;
  for (int seed = 0; seed < kSamples; ++seed) {
    make_countable();
    database.query("SELECT setseed(" + std::to_string(seed) + " / 100.0)");
    ASSERT_TRUE(database.query("SELECT tocsin.count_horizon()")[0][0].as<bool>());
    const auto row = database.query("SELECT count(*), bool_and(low <= " + truth + " AND high >= " + truth +
                                    "), bool_or(is_exact) FROM tocsin.horizon")[0];
    ASSERT_EQ(row[0].as<int>(), 2) << "an hour and a day";
    ASSERT_FALSE(row[2].as<bool>());
    held += row[1].as<bool>();
  }
  EXPECT_GE(held, 90);
}

TEST_F(Horizon, TheBoundsOfASampleOfEqualShardsAreThoseOfASampleOfJobs) {
  database.query(
      "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
      "max_attempts, biz_id) SELECT i * 1024 + i % 8, now() + interval '30 hours', now() + interval '30 hours', now(), "
      "now(), " +
      std::to_string(type_id) + ", i % 8, 16, i::text FROM generate_series(1, 4000) i");
  const std::string type = std::to_string(type_id);
  database.query("INSERT INTO tocsin.job_count_delta (type_id, status, n) VALUES (" + type + ", 0, 4000)");
  database.query("INSERT INTO tocsin.horizon_type VALUES (" + type + ", '2020-01-01', 4000)");
  EXPECT_TRUE(must(maintenance.count_horizon()));
  const auto row = database.query("SELECT n, low, high FROM tocsin.horizon WHERE width = 'day'")[0];
  EXPECT_EQ(row[0].as<int>(), 4000);
  EXPECT_EQ(row[1].as<int>(), 3876) << "1.96 x the root of 2,000 x 2 x (2 - 1) fewer";
  EXPECT_EQ(row[2].as<int>(), 4124);
}

}  // namespace
}  // namespace tocsin
