// Old days of history are dropped one after the other: a disk that deletes a large file keeps others waiting.
#include <gtest/gtest.h>

#include <atomic>

#include "node/housekeeping.h"
#include "support/manual_clock.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

TEST(Retention, DropsOneTableAtATime) {
  TestDatabase database;
  database.query("SELECT tocsin.ensure_history('2020-01-01', '2020-01-02')");
  const auto old_tables = [&] {
    return database.number("SELECT count(*) FROM pg_class WHERE relname ~ '^job_history_(done|dead)_202001[0-9]{2}$'");
  };
  ManualClock clock;
  std::atomic<int> rounds{0};
  Housekeeping::Callbacks callbacks{.check = [] { return Status(Unit{}); },
                                    .checked = [] {},
                                    .refused = [](const Error&) {},
                                    .reload_types =
                                        [&](TypeStore&) {
                                          ++rounds;
                                          return Status(Unit{});
                                        },
                                    .answered = [] {},
                                    .failed = [](const Error& error) { ADD_FAILURE() << error.message; }};
  Housekeeping housekeeping({SessionConfig{database.url()}, {{"done", 7}, {"dead", 30}}}, clock, callbacks);
  ASSERT_TRUE(housekeeping.start());
  // Types are read first in a round: when they are read again the round before is over.
  const auto pass_rounds = [&] {
    for (int i = 0; i < 3; ++i) {
      const int before = rounds;
      housekeeping.reload_types();
      ASSERT_TRUE(eventually([&] { return rounds > before; }));
    }
  };
  pass_rounds();
  EXPECT_EQ(old_tables(), 4) << "it has only just started";
  for (int left = 3; left >= 0; --left) {
    clock.advance(std::chrono::seconds(30));
    pass_rounds();
    EXPECT_EQ(old_tables(), left);
  }
}

}  // namespace
}  // namespace tocsin
