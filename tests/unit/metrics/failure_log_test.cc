#include "metrics/failure_log.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using std::chrono::seconds;

class FailureLogTest : public ::testing::Test {
 protected:
  std::string line(std::string_view stage, const std::string& message, int second) {
    return log_.line(stage, {ErrorCode::unavailable, message, ""}, MonoTime(seconds(1000 + second))).value_or("");
  }
  FailureLog log_;
};

TEST_F(FailureLogTest, LogsARepeatedFailureOnceAMinuteWithItsCount) {
  EXPECT_EQ(line("scanner", "refused", 0), "scanner: database unavailable: refused");
  for (int second = 1; second < 60; ++second) EXPECT_EQ(line("scanner", "refused", second), "");
  EXPECT_EQ(line("scanner", "refused", 60), "scanner: database unavailable: refused (59 more since the last line)");
  EXPECT_EQ(line("scanner", "refused", 61), "");
}

TEST_F(FailureLogTest, LogsAnotherFailureAtOnceButOneASecond) {
  EXPECT_NE(line("scanner", "refused", 0), "");
  EXPECT_EQ(line("scanner", "reset", 0), "");
  EXPECT_EQ(line("scanner", "reset", 1), "scanner: database unavailable: reset");
  EXPECT_EQ(line("scanner", "refused", 2), "") << "said two seconds ago";
}

TEST_F(FailureLogTest, AlternatingFailuresAreLoggedOnceAMinuteEach) {
  int lines = 0;
  for (int second = 0; second < 60; ++second)
    for (const char* message : {"a: refused", "b: refused"}) lines += line("scanner", message, second).empty() ? 0 : 1;
  EXPECT_EQ(lines, 2);
}

TEST_F(FailureLogTest, StagesDoNotHideEachOther) {
  EXPECT_NE(line("scanner", "refused", 0), "");
  EXPECT_NE(line("claimer", "refused", 0), "");
}

}  // namespace
}  // namespace tocsin
