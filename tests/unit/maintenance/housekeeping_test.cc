#include "maintenance/housekeeping.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace tocsin {
namespace {

// By this field the node knows at once that the database is away (maintenance/outage_watch.h). The check may fail
// although the database answers: it opens one more connection.
TEST(HousekeepingWithoutDatabase, ReportsAFailedConnectionBeforeTheCheck) {
  SessionConfig session;
  session.url = "postgresql://nobody@127.0.0.1:1/none";  // nothing listens on this port
  ManualClock clock;
  bool is_checked = false;
  Housekeeping::Callbacks callbacks;
  callbacks.check = [&]() -> Status {
    is_checked = true;
    return Unit{};
  };
  callbacks.answered = [] { ADD_FAILURE() << "nothing has answered"; };
  Housekeeping housekeeping({session, {}, 1}, clock, callbacks);
  const Status done = housekeeping.start();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().field, kUnreachable);
  EXPECT_FALSE(is_checked);
}

}  // namespace
}  // namespace tocsin
