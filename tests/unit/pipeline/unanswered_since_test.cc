#include "pipeline/unanswered_since.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

TEST(UnansweredSince, WaitsOnlyAfterARequest) {
  UnansweredSince watch;
  EXPECT_FALSE(watch.has_waited(1s, MonoTime(1h)));
  watch.note_request(MonoTime(2s));
  EXPECT_FALSE(watch.has_waited(1s, MonoTime(3s)));
  EXPECT_TRUE(watch.has_waited(1s, MonoTime(3001ms)));
}

TEST(UnansweredSince, WaitsSinceTheFirstRequestThatWasNotAnswered) {
  UnansweredSince watch;
  watch.note_request(MonoTime(2s));
  watch.note_request(MonoTime(4s));
  EXPECT_TRUE(watch.has_waited(2s, MonoTime(4500ms)));
}

TEST(UnansweredSince, AnAnswerEndsTheWait) {
  UnansweredSince watch;
  watch.note_request(MonoTime(2s));
  watch.note_answer();
  EXPECT_FALSE(watch.has_waited(1s, MonoTime(1h)));
  watch.note_request(MonoTime(1h));
  EXPECT_FALSE(watch.has_waited(1s, MonoTime(1h + 1s)));
}

}  // namespace
}  // namespace tocsin
