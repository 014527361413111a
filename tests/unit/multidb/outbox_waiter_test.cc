// How long requests wait for entries of an outbox, look by look.
#include "multidb/outbox_waiter.h"

#include <gtest/gtest.h>

#include <set>

#include "support/manual_clock.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// An outbox with these entries.
struct Entries {
  std::set<JobId> jobs;
  std::set<std::string> keys;
  bool is_down = false;
  int looks = 0, announced = 0;
};

class FakeLookup final : public OutboxLookup {
 public:
  explicit FakeLookup(Entries& entries) : entries_(entries) {}
  Result<std::vector<bool>> are_waiting(std::span<const EntryQuery> queries) override {
    ++entries_.looks;
    if (entries_.is_down) return Error{ErrorCode::unavailable, "it is down", ""};
    std::vector<bool> waiting;
    for (const EntryQuery& query : queries)
      waiting.push_back(entries_.jobs.contains(query.job_id) || entries_.keys.contains(query.biz_id));
    return waiting;
  }
  Status announce() override {
    ++entries_.announced;
    return Unit{};
  }

 private:
  Entries& entries_;
};

class Waiting : public testing::Test {
 protected:
  // Its answer: 'w' still waits, '-' no entry; a space: none yet.
  char& ask(std::vector<EntryQuery> queries) {
    char& answer = *answers_.emplace_back(std::make_unique<char>(' '));
    EXPECT_TRUE(waiter.push(std::move(queries), [&answer](bool is_waiting) { answer = is_waiting ? 'w' : '-'; }));
    return answer;
  }

  ManualClock clock;
  Entries entries;
  std::vector<Error> errors;
  OutboxWaiter waiter{std::make_unique<FakeLookup>(entries), clock, [this](const Error& e) { errors.push_back(e); }};

 private:
  std::vector<std::unique_ptr<char>> answers_;
};

TEST_F(Waiting, EndsAtOnceWithoutAnEntryAndWithOneWhenItIsGone) {
  entries.keys = {"order-1"};
  const char& free = ask({{0, "order-2"}});
  const char& held = ask({{0, "order-1"}});
  waiter.step();
  EXPECT_EQ(free, '-');
  EXPECT_EQ(held, ' ');
  EXPECT_EQ(entries.looks, 1) << "they shared it";
  EXPECT_EQ(entries.announced, 1);
  clock.advance(20ms);
  waiter.step();
  EXPECT_EQ(held, ' ');
  EXPECT_EQ(entries.announced, 1) << "once is enough";
  entries.keys.clear();
  waiter.step();
  EXPECT_EQ(held, '-');
}

TEST_F(Waiting, LastsUntilTheLastEntryOfManyJobsIsGone) {
  entries.jobs = {4711, 4712};
  const char& both = ask({{4711, ""}, {4712, ""}, {4713, ""}});
  waiter.step();
  entries.jobs = {4712};
  waiter.step();
  EXPECT_EQ(both, ' ');
  entries.jobs = {4711};  // created again: not what the request was about
  waiter.step();
  EXPECT_EQ(both, '-');
}

TEST_F(Waiting, EndsAfterTwoSecondsAndAtTheStop) {
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

TEST_F(Waiting, EndsWhenTheDatabaseDoesNotAnswer) {
  entries.keys = {"order-1"};
  const char& held = ask({{0, "order-1"}});
  waiter.step();
  entries.is_down = true;
  const char& fresh = ask({{0, "order-1"}});
  waiter.step();
  EXPECT_EQ(held, '-');
  EXPECT_EQ(fresh, '-');
  EXPECT_EQ(errors.size(), 2U);
}

}  // namespace
}  // namespace tocsin
