#include "maintenance/database_events.h"

#include <gtest/gtest.h>

#include "support/logged_lines.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

using std::chrono::seconds;

const Error kLostConnection{ErrorCode::unavailable, "the connection was lost", ""};

class DatabaseEventsTest : public ::testing::Test {
 protected:
  DatabaseEventsTest() { watch_.answered(); }

  ManualClock clock_;
  Metrics metrics_{clock_};
  ReportBuffer reports_{[] { return std::optional<ReportBuffer::Context>(); }};
  OutageWatch watch_{"main (127.0.0.1)", clock_};
  int checks_ = 0;
  DatabaseEvents events_{metrics_, reports_, watch_, "main: ", [this] { ++checks_; }};
};

TEST_F(DatabaseEventsTest, AFailedCallCausesACheckOnceASecond) {
  clock_.advance(seconds(2));
  events_.failed("claim", kLostConnection);
  EXPECT_EQ(checks_, 1);
  events_.failed("finish", kLostConnection);
  EXPECT_EQ(checks_, 1);
  clock_.advance(seconds(1));
  events_.failed("claim", kLostConnection);
  EXPECT_EQ(checks_, 2);
}

TEST_F(DatabaseEventsTest, ErrorsWithoutAnOutageCauseNoCheck) {
  clock_.advance(seconds(2));
  events_.failed("claim", {ErrorCode::conflict, "locked", ""});
  events_.note_failure("housekeeping", kLostConnection);  // which checks by itself
  EXPECT_EQ(checks_, 0);
}

// With several databases the prefix is the database's name.
TEST_F(DatabaseEventsTest, AFailureIsLoggedWithThePrefix) {
  const LoggedLines log;
  events_.note_failure("bulk", {ErrorCode::invalid, "out of range", ""});
  EXPECT_EQ(log.text(), "warning bulk: database invalid: main: out of range\n");
}

}  // namespace
}  // namespace tocsin
