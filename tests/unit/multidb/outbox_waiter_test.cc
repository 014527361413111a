// How long requests wait for entries of an outbox, look by look.
#include "multidb/outbox_waiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "support/manual_clock.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// An outbox with these entries.
struct Entries {
  std::set<JobId> jobs;
  std::set<std::string> keys;
  bool fails = false;
  int looks = 0, announced = 0, shard_looks = 0;
  std::size_t largest = 0;  // look
};

class FakeLookup final : public OutboxLookup {
 public:
  explicit FakeLookup(Entries& entries) : entries_(entries) {}
  Result<std::vector<bool>> are_waiting(std::span<const EntryQuery> queries) override {
    ++entries_.looks;
    entries_.largest = std::max(entries_.largest, queries.size());
    if (entries_.fails) return Error{ErrorCode::unavailable, "it is down", ""};
    std::vector<bool> waiting;
    for (const EntryQuery& query : queries)
      waiting.push_back(entries_.jobs.contains(query.job_id) || entries_.keys.contains(query.biz_id));
    return waiting;
  }
  Status announce() override {
    ++entries_.announced;
    return Unit{};
  }
  Result<ShardsHere> shards_here() override {
    ++entries_.shard_looks;
    if (entries_.fails) return Error{ErrorCode::unavailable, "it is down", ""};
    return ShardsHere{ShardSet{}.set(3), {}};
  }

 private:
  Entries& entries_;
};

class OutboxWaiterTest : public testing::Test {
 protected:
  // Its answer: 'w' the entry waits, '-' no entry, 'n' not asked, '?' unknown; a space: none yet.
  char& ask(std::vector<EntryQuery> queries) {
    char& answer = *answers_.emplace_back(std::make_unique<char>(' '));
    const auto take = [&answer](OutboxWaiter::Answer what) {
      answer = what == OutboxWaiter::Answer::gone        ? '-'
               : what == OutboxWaiter::Answer::waits     ? 'w'
               : what == OutboxWaiter::Answer::not_asked ? 'n'
                                                         : '?';
    };
    EXPECT_TRUE(waiter.push(std::move(queries), take));
    return answer;
  }
  void failed(const Error& error) {
    errors.push_back(error);
    if (on_failure) on_failure();
  }
  void next_round() {
    clock.advance(20ms);
    waiter.step();
  }

  ManualClock clock;
  Entries entries;
  bool is_answering = true;
  std::function<void()> on_failure;
  std::vector<Error> errors;
  OutboxWaiter waiter{std::make_unique<FakeLookup>(entries), clock,
                      OutboxWaiter::Hooks{[this] { return is_answering; }, [this](const Error& e) { failed(e); }}};

 private:
  std::vector<std::unique_ptr<char>> answers_;
};

TEST_F(OutboxWaiterTest, AnswersAtOnceWithoutAnEntryElseWhenItIsGone) {
  entries.keys = {"order-1"};
  const char& free = ask({{0, "order-2"}});
  const char& held = ask({{0, "order-1"}});
  waiter.step();
  EXPECT_EQ(free, '-');
  EXPECT_EQ(held, ' ');
  EXPECT_EQ(entries.looks, 1) << "they shared it";
  EXPECT_EQ(entries.announced, 1);
  next_round();
  EXPECT_EQ(held, ' ');
  EXPECT_EQ(entries.announced, 1) << "once is enough";
  entries.keys.clear();
  next_round();
  EXPECT_EQ(held, '-');
}

TEST_F(OutboxWaiterTest, ReadsEveryTwentyMillisecondsForAnyNumberOfRequests) {
  entries.keys = {"order-1"};
  const char& held = ask({{0, "order-1"}});
  waiter.step();
  for (int i = 0; i < 5; ++i) {
    ask({{0, "order-1"}});
    waiter.step();
  }
  EXPECT_EQ(entries.looks, 6) << "a new request is looked for at once, what is held is not";
  EXPECT_EQ(entries.announced, 1);
  next_round();
  EXPECT_EQ(entries.looks, 7);
  EXPECT_EQ(entries.announced, 2) << "of those that came since";
  entries.keys.clear();
  const char& fresh = ask({{0, "order-1"}});
  waiter.step();
  EXPECT_EQ(fresh, '-');
  EXPECT_EQ(held, ' ');
  next_round();
  EXPECT_EQ(held, '-');
  EXPECT_EQ(entries.announced, 2);
}

TEST_F(OutboxWaiterTest, WaitsForTheLastEntryOfManyJobs) {
  entries.jobs = {4711, 4712};
  const char& both = ask({{4711, ""}, {4712, ""}, {4713, ""}});
  waiter.step();
  entries.jobs = {4712};
  next_round();
  EXPECT_EQ(both, ' ');
  entries.jobs = {4711};  // created again: not what the request was about
  next_round();
  EXPECT_EQ(both, '-');
}

TEST_F(OutboxWaiterTest, EndsAfterTwoSecondsAndAtTheStop) {
  entries.keys = {"order-1"};
  const char& early = ask({{0, "order-1"}});
  waiter.step();
  clock.advance(OutboxWaiter::kPatience - 1ms);
  const char& late = ask({{0, "order-1"}});
  waiter.step();
  EXPECT_EQ(early, ' ');
  clock.advance(1ms);
  waiter.step();
  EXPECT_EQ(early, 'w');
  EXPECT_EQ(late, ' ');
  waiter.step(/*is_last=*/true);
  EXPECT_EQ(late, 'w');
}

TEST_F(OutboxWaiterTest, AFailedReadDoesNotAnswerTheWaiters) {
  entries.keys = {"order-1"};
  const char& held = ask({{0, "order-1"}});
  waiter.step();
  entries.fails = true;
  on_failure = [this] { is_answering = false; };  // the failure is how it becomes known
  next_round();
  EXPECT_EQ(held, '?');
  is_answering = true;
  const char& fresh = ask({{0, "order-2"}});
  next_round();
  EXPECT_EQ(fresh, '?');
  EXPECT_EQ(errors.size(), 2U);
}

TEST_F(OutboxWaiterTest, DoesNotWaitForAnUnavailableDatabase) {
  entries.keys = {"order-1"};
  const char& held = ask({{0, "order-1"}});
  waiter.step();
  is_answering = false;
  const char& fresh = ask({{0, "order-1"}});
  next_round();
  EXPECT_EQ(held, 'n');
  EXPECT_EQ(fresh, 'n');
  EXPECT_EQ(entries.looks, 1);
}

TEST_F(OutboxWaiterTest, IsBoundedAndReadsInParts) {
  std::vector<EntryQuery> all(OutboxWaiter::kMostQueries, EntryQuery{1, ""});
  all.front().job_id = 2;
  entries.jobs = {2};
  const char& held = ask(all);
  EXPECT_FALSE(waiter.push({{3, ""}}, [](OutboxWaiter::Answer) {}));
  waiter.step();
  EXPECT_EQ(entries.largest, 1'000U);
  EXPECT_FALSE(waiter.push({{3, ""}}, [](OutboxWaiter::Answer) {})) << "also what is held counts";
  entries.jobs.clear();
  next_round();
  EXPECT_EQ(held, '-');
  ask(all);
}

TEST_F(OutboxWaiterTest, QuestionsForShardsShareALookThatNoEntryDelays) {
  entries.jobs = {1};
  const char& held = ask({{1, ""}});
  std::vector<Result<ShardsHere>> answers;
  const auto take = [&](Result<ShardsHere> shards) { answers.push_back(std::move(shards)); };
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(waiter.ask_shards(take));
  waiter.step();
  EXPECT_EQ(held, ' ');
  ASSERT_EQ(answers.size(), 2U);
  for (const auto& shards : answers) EXPECT_EQ(shards->living, ShardSet{}.set(3));
  EXPECT_EQ(entries.shard_looks, 1);
  next_round();
  EXPECT_EQ(answers.size(), 2U) << "each is answered once";
  EXPECT_EQ(entries.shard_looks, 1) << "nobody asks";
}

TEST_F(OutboxWaiterTest, AnswersNoShardsOfAnUnavailableDatabase) {
  std::vector<Result<ShardsHere>> answers;
  const auto take = [&](Result<ShardsHere> shards) { answers.push_back(std::move(shards)); };
  entries.fails = true;
  EXPECT_TRUE(waiter.ask_shards(take));
  waiter.step();
  EXPECT_EQ(errors.size(), 1U) << "the database is checked";
  is_answering = false;
  EXPECT_TRUE(waiter.ask_shards(take));
  waiter.step();
  EXPECT_EQ(entries.shard_looks, 1) << "not asked";
  ASSERT_EQ(answers.size(), 2U);
  for (const auto& shards : answers) EXPECT_FALSE(shards);
  EXPECT_TRUE(waiter.ask_shards(take));
  waiter.stop();
  EXPECT_FALSE(waiter.ask_shards(take));
}

}  // namespace
}  // namespace tocsin
