// Consumers that wait.
#include "admission/poll_queue.h"

#include <gtest/gtest.h>

#include "support/counting_waker.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

class PollQueueTest : public ::testing::Test {
 protected:
  PollQueueTest() { polls.join({&claimer}, &sweeper); }

  // Its answer will be in answers[name].
  PollPtr poll(int name, TypeId type, std::size_t max, Duration wait, Duration ttr = 30s) {
    return std::make_shared<const Poll>(Poll{type, max, ttr, now, now + wait,
                                             [this, name] { return gone.contains(name); },
                                             [this, name](const std::vector<ClaimedJob>& jobs) {
                                               EXPECT_FALSE(answers.contains(name)) << "once";
                                               answers[name] = jobs.size();
                                             }});
  }

  MonoTime now{};
  std::set<int> gone;
  std::map<int, std::size_t> answers;
  CountingWaker claimer, sweeper;
  PollQueue polls{3};
};

TEST_F(PollQueueTest, RefusesPollsBeyondItsCapacity) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(polls.add(poll(i, 1, 10, 5s)));
  EXPECT_EQ(claimer.wakes, 3);
  EXPECT_FALSE(polls.add(poll(3, 1, 10, 5s)));
  EXPECT_EQ(polls.size(), 3U);
  EXPECT_EQ(polls.demand(1), 30U);
  EXPECT_EQ(polls.demand(2), 0U);
}

// What is late keeps its pace: a node asks for its part of the catch-up rate only if some of it waits.
TEST_F(PollQueueTest, TellsForWhichDueJobsConsumersWait) {
  const auto asked_for = [&](std::size_t fresh, std::size_t late) {
    const Waiting waiting = polls.asked_for(1, {fresh, late});
    return std::pair(waiting.fresh, waiting.late);
  };
  EXPECT_EQ(asked_for(5, 5), std::pair(std::size_t{0}, std::size_t{0})) << "nobody asks here";
  polls.add(poll(0, 1, 10, 5s));
  EXPECT_EQ(asked_for(0, 0), std::pair(std::size_t{0}, std::size_t{0}));
  EXPECT_EQ(asked_for(3, 4), std::pair(std::size_t{3}, std::size_t{4}));
  EXPECT_EQ(asked_for(8, 4), std::pair(std::size_t{6}, std::size_t{4}));
  EXPECT_EQ(asked_for(8, 1'000'000), std::pair(std::size_t{0}, std::size_t{10}));
}

TEST_F(PollQueueTest, GivesConsumersInTheOrderTheyCameAndPutsThemBackToTheirPlace) {
  for (int i = 0; i < 3; ++i) polls.add(poll(i, 1, 10, 5s));
  auto shares = polls.take(1, 12, false);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].n, 10U);
  EXPECT_EQ(shares[1].n, 2U);
  EXPECT_EQ(polls.demand(1), 10U);
  polls.put_back({shares[0].poll, shares[1].poll});
  EXPECT_EQ(polls.demand(1), 30U);
  shares = polls.take(1, 30, false);
  ASSERT_EQ(shares.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    shares[static_cast<std::size_t>(i)].poll->answer({});
    EXPECT_EQ(answers.size(), static_cast<std::size_t>(i + 1));
    EXPECT_TRUE(answers.contains(i)) << "in order";
  }
  EXPECT_TRUE(polls.take(1, 30, false).empty());
}

TEST_F(PollQueueTest, PollsThatRestAreServedAfterwardsAtTheTail) {
  polls.add(poll(0, 1, 10, 5s));
  polls.put_back_later({polls.take(1, 10, false).at(0).poll}, now + 200ms);
  polls.add(poll(1, 1, 10, 5s));
  EXPECT_EQ(polls.size(), 2U);
  EXPECT_EQ(polls.demand(1), 10U) << "it asks for nothing meanwhile";
  EXPECT_TRUE(polls.was_asked_since(1, now + 1ms));
  EXPECT_EQ(polls.expire(now), now + 200ms);
  now += 200ms;
  const int wakes = claimer.wakes;
  polls.expire(now);
  EXPECT_EQ(claimer.wakes, wakes + 1);
  const auto shares = polls.take(1, 20, false);
  ASSERT_EQ(shares.size(), 2U);
  shares[0].poll->answer({});
  EXPECT_TRUE(answers.contains(1)) << "behind those that came meanwhile";
  EXPECT_EQ(polls.size(), 0U);
}

TEST_F(PollQueueTest, PollsThatRestAreAnsweredAtTheirDeadlineAndAtTheEnd) {
  polls.add(poll(0, 1, 10, 150ms));
  polls.put_back_later({polls.take(1, 10, false).at(0).poll}, now + 200ms);
  EXPECT_EQ(polls.expire(now), now + 150ms);
  now += 150ms;
  polls.expire(now);
  EXPECT_TRUE(answers.contains(0));
  polls.add(poll(1, 1, 10, 5s));
  const PollPtr resting = polls.take(1, 10, false).at(0).poll;
  polls.put_back_later({resting}, now + 200ms);
  polls.close();
  EXPECT_TRUE(answers.contains(1));
  EXPECT_EQ(polls.size(), 0U);
}

TEST_F(PollQueueTest, TakesPollsOfOneLeaseLengthWhenRequested) {
  polls.add(poll(0, 1, 10, 5s, 30s));
  polls.add(poll(1, 1, 10, 5s, 30s));
  polls.add(poll(2, 1, 10, 5s, 60s));
  EXPECT_EQ(polls.take(1, 100, true).size(), 2U);
  EXPECT_EQ(polls.take(1, 100, true).size(), 1U);
}

TEST_F(PollQueueTest, SkipsAndRemovesDisconnectedConsumers) {
  polls.add(poll(0, 1, 10, 5s));
  polls.add(poll(1, 1, 10, 5s));
  polls.add(poll(2, 2, 10, 5s));
  gone = {0, 2};
  const auto shares = polls.take(1, 5, false);
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares[0].n, 5U);
  EXPECT_EQ(polls.size(), 1U);
  EXPECT_EQ(polls.expire(now), kWhenWoken);
  EXPECT_EQ(polls.size(), 0U);
  EXPECT_TRUE(answers.empty());
}

TEST_F(PollQueueTest, AnswersEmptyAtTheDeadline) {
  polls.add(poll(0, 1, 10, 5s));
  polls.add(poll(1, 2, 10, 300ms));
  EXPECT_EQ(polls.expire(now), now + 300ms);
  EXPECT_TRUE(answers.empty());
  now += 300ms;
  EXPECT_EQ(polls.expire(now), now + 1s) << "closed connections are looked for every second";
  EXPECT_EQ(answers, (std::map<int, std::size_t>{{1, 0}}));
  now += 5s;
  EXPECT_EQ(polls.expire(now), kWhenWoken);
  EXPECT_EQ(answers.size(), 2U);
}

TEST_F(PollQueueTest, WakesTheSweeperForAnEarlierDeadlineOnly) {
  polls.add(poll(0, 1, 10, 5s));
  EXPECT_EQ(sweeper.wakes, 1);
  polls.add(poll(1, 1, 10, 6s));
  EXPECT_EQ(sweeper.wakes, 1);
  polls.add(poll(2, 1, 10, 1s));
  EXPECT_EQ(sweeper.wakes, 2);
}

TEST_F(PollQueueTest, ANonBlockingPollIsAnsweredAfterOneClaim) {
  polls.add(poll(0, 1, 10, 0s));
  polls.add(poll(1, 1, 10, 5s));
  EXPECT_EQ(polls.expire(now), now + 100ms) << "not before one had the time to look";
  EXPECT_TRUE(answers.empty());
  polls.note_nothing_due(0, now);
  EXPECT_EQ(answers, (std::map<int, std::size_t>{{0, 0}}));
  EXPECT_EQ(polls.size(), 1U);
}

TEST_F(PollQueueTest, ANonBlockingPollWaitsForAClaimOfEveryEngine) {
  CountingWaker other;
  const std::size_t second = polls.join({&other}, &sweeper);
  polls.note_nothing_due(second, now);
  now += 1s;
  polls.add(poll(0, 1, 10, 0s));
  EXPECT_EQ(claimer.wakes, 1);
  EXPECT_EQ(other.wakes, 1);
  polls.note_nothing_due(0, now);
  EXPECT_TRUE(answers.empty()) << "the other one looked before it came";
  polls.note_nothing_due(second, now);
  EXPECT_EQ(answers.size(), 1U);
  polls.add(poll(1, 1, 10, 0s));
  EXPECT_EQ(polls.expire(now + 100ms), MonoTime::max()) << "and the others do not wait for one that hangs";
  EXPECT_EQ(answers.size(), 2U);
}

TEST_F(PollQueueTest, AnswersAllPollsWhenItCloses) {
  polls.add(poll(0, 1, 10, 5s));
  polls.add(poll(1, 1, 10, 5s));
  const auto taken = polls.take(1, 1, false);
  polls.close();
  EXPECT_EQ(answers, (std::map<int, std::size_t>{{1, 0}}));
  polls.put_back({taken[0].poll});
  EXPECT_TRUE(polls.add(poll(2, 1, 10, 5s)));
  EXPECT_EQ(answers.size(), 3U);
  EXPECT_EQ(polls.size(), 0U);
}

}  // namespace
}  // namespace tocsin
