#include "maintenance/outage_watch.h"

#include <gtest/gtest.h>

#include "postgres/session.h"
#include "support/logged_lines.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Error kLost{ErrorCode::unavailable, "the connection was lost", ""};
const Error kRefusedConnection{ErrorCode::unavailable, "connection refused", kUnreachable};

class OutageWatchTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  OutageWatch watch_{"main (127.0.0.1)", clock_};
};

TEST_F(OutageWatchTest, ADatabaseIsDownBeforeItsFirstAnswer) {
  EXPECT_FALSE(watch_.is_answering());
  watch_.answered();
  EXPECT_TRUE(watch_.is_answering());
}

TEST_F(OutageWatchTest, ADatabaseWithoutConnectionsIsDownAtOnce) {
  watch_.answered();
  watch_.failed(kLost);
  EXPECT_TRUE(watch_.is_answering()) << "one connection was lost";
  watch_.failed(kRefusedConnection);
  EXPECT_FALSE(watch_.is_answering());
  watch_.answered();
  EXPECT_TRUE(watch_.is_answering());
}

TEST_F(OutageWatchTest, AFrozenDatabaseIsDetectedByATimeout) {
  watch_.answered();
  clock_.advance(seconds(4));
  EXPECT_TRUE(watch_.is_answering());
  clock_.advance(seconds(1));
  EXPECT_FALSE(watch_.is_answering());
}

TEST_F(OutageWatchTest, TheFirstFailureAfterASilenceBeginsAnOutage) {
  watch_.answered();
  clock_.advance(OutageWatch::kSilence);
  watch_.failed({ErrorCode::in_doubt, "the answer was lost", ""});
  EXPECT_FALSE(watch_.wants_check()) << "an outage has begun";
}

TEST_F(OutageWatchTest, ARefusalIsNoOutage) {
  watch_.answered();
  watch_.failed({ErrorCode::conflict, "locked", kUnreachable});
  EXPECT_TRUE(watch_.is_answering());
}

TEST_F(OutageWatchTest, ADatabaseDownFromTheStartMayAnswerLater) {
  watch_.failed(kRefusedConnection);
  EXPECT_FALSE(watch_.is_answering());
  watch_.answered();
  EXPECT_TRUE(watch_.is_answering());
}

TEST_F(OutageWatchTest, RequestsOneCheckASecondAndNoneDuringAnOutage) {
  watch_.answered();
  clock_.advance(seconds(2));
  EXPECT_TRUE(watch_.wants_check());
  clock_.advance(milliseconds(999));
  EXPECT_FALSE(watch_.wants_check());
  clock_.advance(milliseconds(1));
  EXPECT_TRUE(watch_.wants_check());
  watch_.failed(kRefusedConnection);
  clock_.advance(seconds(2));
  EXPECT_FALSE(watch_.wants_check());
}

TEST_F(OutageWatchTest, AnOutageHasOneLineAtItsBeginningAndOneAtItsEnd) {
  const LoggedLines log;
  watch_.answered();
  for (int i = 0; i < 3; ++i) {
    watch_.failed(kRefusedConnection);
    clock_.advance(seconds(3));
  }
  watch_.answered();
  clock_.advance(seconds(1));
  watch_.answered();
  EXPECT_EQ(log.text(),
            "error database main (127.0.0.1): does not answer: connection refused. Its jobs wait for it\n"
            "info database main (127.0.0.1): answers again, after 9 s\n");
}

}  // namespace
}  // namespace tocsin
