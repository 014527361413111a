#include "pipeline/answer_limit.h"

#include <gtest/gtest.h>

#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

class AnswerLimitTest : public ::testing::Test {
 protected:
  // The time limit that a call with this result had.
  Duration ask(const Result<int>& result) {
    static_cast<void>(limit.call(1s, [&] { return result; }));
    return store.time_limit;
  }
  ScriptedStore store;
  AnswerLimit limit{store};
};

TEST_F(AnswerLimitTest, DoublesWithEachFailureInARow) {
  EXPECT_EQ(ask(unavailable()), 1s);
  EXPECT_EQ(ask(in_doubt()), 2s);
  EXPECT_EQ(ask(unavailable()), 4s);
  EXPECT_TRUE(limit.is_unanswered());
}

TEST_F(AnswerLimitTest, ASuccessEndsTheRow) {
  ask(unavailable());
  ask(1);
  EXPECT_FALSE(limit.is_unanswered());
  EXPECT_EQ(ask(1), 1s);
}

TEST_F(AnswerLimitTest, ARowErrorIsAnAnswer) {
  ask(unavailable());
  ask(Error{ErrorCode::invalid, "not this one", ""});
  EXPECT_FALSE(limit.is_unanswered());
  EXPECT_EQ(ask(Error{ErrorCode::conflict, "a lock", kLocked}), 1s);
  EXPECT_EQ(ask(1), 1s);
}

TEST_F(AnswerLimitTest, IsAtMost1024TimesThePatience) {
  for (int i = 0; i < 20; ++i) ask(unavailable());
  EXPECT_EQ(ask(unavailable()), 1024s);
}

TEST(RefusedRow, IsARowErrorAndNotTheLockOfATable) {
  EXPECT_TRUE(is_refused_row({ErrorCode::invalid, "not this one", ""}));
  EXPECT_TRUE(is_refused_row({ErrorCode::conflict, "this key is held", ""}));
  EXPECT_FALSE(is_refused_row({ErrorCode::conflict, "lock timeout", kLocked}));
  EXPECT_FALSE(is_refused_row(unavailable()));
}

}  // namespace
}  // namespace tocsin
