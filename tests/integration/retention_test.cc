// Old days of history are dropped one after the other: a disk that deletes a large file keeps others waiting.
#include <gtest/gtest.h>

#include <atomic>

#include "maintenance/housekeeping.h"
#include "support/manual_clock.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class RetentionTest : public testing::Test {
 protected:
  RetentionTest() { database.query("SELECT tocsin.ensure_history('2020-01-01', '2020-01-02')"); }

  Housekeeping::Callbacks callbacks() {
    return {.check = [] { return Status(Unit{}); },
            .checked = [] {},
            .refused = [](const Error&) {},
            .reload_types =
                [this](TypeStore&) {
                  ++rounds;
                  return Status(Unit{});
                },
            .answered = [] {},
            .failed = [](const Error& error) { ADD_FAILURE() << error.message; },
            .take_histograms = [] { return std::vector<ReportHistogram>(); },
            .counted = [](const std::vector<TypeState>&) {},
            .withheld = [this](std::size_t days) { withheld = days; }};
  }
  // Types are read first in a round: when they are read again the round before is over.
  void pass_rounds(Housekeeping& housekeeping) {
    for (int i = 0; i < 3; ++i) {
      const int before = rounds;
      housekeeping.reload_types();
      ASSERT_TRUE(eventually([&] { return rounds > before; }));
    }
  }
  std::int64_t old_tables() {
    return database.number("SELECT count(*) FROM pg_class WHERE relname ~ '^job_history_(done|dead)_202001[0-9]{2}$'");
  }
  std::int64_t tables_of(const std::string& kind) {
    return database.number("SELECT count(*) FROM pg_class WHERE relname ~ '^job_history_" + kind + "_[0-9]{8}$'");
  }
  void drop_all_history() {
    database.query(
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT relname FROM pg_class WHERE relname ~ "
        "'^job_history_[a-z]+_[0-9]{8}$' LOOP EXECUTE 'DROP TABLE tocsin.' || t; END LOOP; END $$");
  }
  void finish_on(const std::string& day) {
    database.query(
        "SELECT tocsin.ensure_history('" + day + "', '" + day +
        "'); INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, finished_at, type_id, "
        "shard, status, attempts, max_attempts, biz_id) SELECT 1024, t, t, t, t, 1, 0, 2, 1, 1, 'x' FROM "
        "(SELECT '" +
        day + " 12:00:00+00'::timestamptz AS t) t");
  }

  TestDatabase database;
  ManualClock clock;
  std::atomic<int> rounds{0};
  std::atomic<std::size_t> withheld{0};
};

TEST_F(RetentionTest, DropsOneTableAtATime) {
  Housekeeping housekeeping({SessionConfig{database.url()}, {{"done", 7}, {"dead", 30}}}, clock, callbacks());
  ASSERT_TRUE(housekeeping.start());
  pass_rounds(housekeeping);
  EXPECT_EQ(old_tables(), 4) << "it has only just started";
  for (int left = 3; left >= 0; --left) {
    clock.advance(std::chrono::seconds(30));
    pass_rounds(housekeeping);
    EXPECT_EQ(old_tables(), left);
  }
}

// To the database's clock these finishes are years old. Without other finishes since, it may be that clock that is
// wrong.
TEST_F(RetentionTest, KeepsTablesThatOnlyTheDatabaseClockCallsOld) {
  finish_on("2020-01-01");
  Housekeeping housekeeping({SessionConfig{database.url()}, {{"done", 7}}}, clock, callbacks());
  ASSERT_TRUE(housekeeping.start());
  for (int i = 0; i < 5; ++i) {
    clock.advance(std::chrono::minutes(11));
    pass_rounds(housekeeping);
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_history"), 1);
  EXPECT_EQ(withheld.load(), 1U);
  clock.advance(std::chrono::days(8));
  pass_rounds(housekeeping);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_history"), 0) << "this node has run for longer than that";
  EXPECT_EQ(withheld.load(), 0U);
}

TEST_F(RetentionTest, FinishesOfLaterDaysConfirmTheClock) {
  for (int day = 1; day <= 9; ++day) finish_on("2020-01-0" + std::to_string(day));
  Housekeeping housekeeping({SessionConfig{database.url()}, {{"done", 7}}}, clock, callbacks());
  ASSERT_TRUE(housekeeping.start());
  for (int i = 0; i < 3; ++i) {
    clock.advance(std::chrono::minutes(11));
    pass_rounds(housekeeping);
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_history"), 8) << "the first day has eight later ones";
  EXPECT_EQ(withheld.load(), 8U);
}

// What a step of more than two days leads to: a day without tables.
TEST_F(RetentionTest, ADayWithoutTablesGetsThemWithTheNextRound) {
  Housekeeping housekeeping({SessionConfig{database.url()}, {{"done", 7}}}, clock, callbacks());
  ASSERT_TRUE(housekeeping.start());
  pass_rounds(housekeeping);
  drop_all_history();
  pass_rounds(housekeeping);
  EXPECT_EQ(tables_of("done"), 3);
}

// A transaction that cancels a job on such a day makes the table that it needs, and may stay open.
TEST_F(RetentionTest, ANodeStartsBesideATransactionThatMakesTheTableOfToday) {
  database.add_noop_type();
  const auto job = database.number("SELECT tocsin.create_job('noop', 'order', '2040-01-01')");
  drop_all_history();
  pqxx::connection connection(database.url());
  auto business = std::make_unique<pqxx::work>(connection);
  business->exec1("SELECT tocsin.cancel_job(" + std::to_string(job) + ")");

  Housekeeping housekeeping({SessionConfig{database.url()}, {{"done", 7}}}, clock, callbacks());
  const auto started = housekeeping.start();
  ASSERT_TRUE(started) << started.error().message;
  pass_rounds(housekeeping);
  EXPECT_EQ(tables_of("done"), 3);
  EXPECT_EQ(tables_of("dead"), 3);
  EXPECT_EQ(tables_of("cancelled"), 0);
  business.reset();  // rolls back, with the table
  pass_rounds(housekeeping);
  EXPECT_EQ(tables_of("cancelled"), 3);
}

}  // namespace
}  // namespace tocsin
