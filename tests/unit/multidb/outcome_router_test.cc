#include "multidb/outcome_router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tocsin {
namespace {

class HandClock final : public Clock {
 public:
  MonoTime now() const override { return now_; }
  void advance(Duration length) { now_ += length; }

 private:
  MonoTime now_{std::chrono::hours(1)};
};

using Replies = std::vector<FinishReply>;

// No database is asked: it notes whose jobs are written where.
class Watched final : public OutcomeRouter {
 public:
  using OutcomeRouter::OutcomeRouter;

  std::vector<std::pair<DatabaseId, std::vector<JobId>>> asked;
  std::set<DatabaseId> away;
  std::set<JobId> refused;  // the row of each fails the call that has it
  std::function<void()> on_silence = [] {};

 protected:
  Result<Replies> finish_at(DatabaseId database_id, std::span<const FinishRequest> requests,
                            const std::string&) override {
    return answer(database_id, requests);
  }
  Result<Replies> finish_here(std::span<const FinishRequest> requests, const std::string&) override {
    return answer(1, requests);
  }

 private:
  Result<Replies> answer(DatabaseId database_id, std::span<const FinishRequest> requests) {
    auto& ids = asked.emplace_back(database_id, std::vector<JobId>{}).second;
    for (const FinishRequest& each : requests) ids.push_back(each.job_id);
    for (const JobId id : ids)
      if (refused.contains(id)) return Error{ErrorCode::invalid, "not this one", ""};
    if (!away.contains(database_id)) return Replies(requests.size(), FinishReply::applied);
    on_silence();
    return Error{ErrorCode::unavailable, "away", ""};
  }
};

// Shards 0, 1 and 2 live in the databases of these numbers; the outcomes are those of database 1.
class OutcomeRouterTest : public testing::Test {
 protected:
  static JobId job(int number, DatabaseId database_id) { return number * 1024 + database_id; }
  Result<Replies> finish(const std::vector<JobId>& ids) {
    std::vector<FinishRequest> requests;
    for (const JobId id : ids) requests.push_back({.job_id = id, .token = 0, .message = ""});
    return outcomes.finish(requests, "node");
  }

  HandClock clock;
  Session session{{}};
  OtherDatabases others{1, {{0, {}}, {2, {}}}, [](Shard shard) { return static_cast<DatabaseId>(shard); }};
  std::vector<std::string> failures;
  Watched outcomes{session, clock, others, [this](const Error& error) { failures.push_back(error.message); }};
};

TEST_F(OutcomeRouterTest, OutcomesAreWrittenToTheirDatabasesTheOwnFirst) {
  const auto done = finish({job(1, 0), job(1, 1), job(2, 0), job(1, 2), job(2, 1)});
  ASSERT_TRUE(done);
  EXPECT_EQ(*done, Replies(5, FinishReply::applied));
  const decltype(outcomes.asked) wanted = {{1, {job(1, 1), job(2, 1)}}, {0, {job(1, 0), job(2, 0)}}, {2, {job(1, 2)}}};
  EXPECT_EQ(outcomes.asked, wanted);
}

TEST_F(OutcomeRouterTest, OutcomesOfUnmappedShardsAreTriedInTheOwnDatabase) {
  ASSERT_TRUE(finish({job(1, 7)}));
  EXPECT_EQ(outcomes.asked.at(0).first, 1);
}

TEST_F(OutcomeRouterTest, AFailedDatabaseIsSkippedForTwiceTheTimeItTook) {
  outcomes.away = {0};
  outcomes.on_silence = [&] { clock.advance(std::chrono::seconds(10)); };
  const auto times_asked = [&] {
    return std::ranges::count(outcomes.asked, DatabaseId{0}, [](const auto& each) { return each.first; });
  };
  const std::vector<JobId> all = {job(1, 0), job(1, 1), job(1, 2)};
  const Replies wanted = {FinishReply::busy, FinishReply::applied, FinishReply::applied};
  for (int i = 0; i < 20; ++i) {
    const auto done = finish(all);
    ASSERT_TRUE(done);
    EXPECT_EQ(*done, wanted) << "only its own wait";
    clock.advance(std::chrono::milliseconds(999));
  }
  EXPECT_EQ(times_asked(), 1);
  clock.advance(std::chrono::seconds(1));
  ASSERT_TRUE(finish(all));
  EXPECT_EQ(times_asked(), 2);
  outcomes.away.clear();
  clock.advance(std::chrono::seconds(20));
  EXPECT_EQ(*finish(all), Replies(3, FinishReply::applied));
  EXPECT_EQ(*finish(all), Replies(3, FinishReply::applied)) << "and is asked at once from then on";
}

TEST_F(OutcomeRouterTest, ADatabaseThatRefusesAtOnceIsSkippedBriefly) {
  outcomes.away = {2};
  ASSERT_TRUE(finish({job(1, 2)}));
  ASSERT_TRUE(finish({job(1, 2)}));
  EXPECT_EQ(outcomes.asked.size(), 1U);
  clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(finish({job(1, 2)}));
  EXPECT_EQ(outcomes.asked.size(), 2U);
}

// One row that a database refuses keeps no other from being written there.
TEST_F(OutcomeRouterTest, ARefusedBatchIsSplitUntilTheRowIsAlone) {
  outcomes.refused = {job(4, 2)};
  std::vector<JobId> all = {job(1, 1)};
  for (int i = 1; i <= 7; ++i) all.push_back(job(i, 2));
  Replies wanted(all.size(), FinishReply::applied);
  wanted[4] = FinishReply::busy;
  for (int i = 0; i < 2; ++i) {
    const auto done = finish(all);
    ASSERT_TRUE(done);
    EXPECT_EQ(*done, wanted) << "the database answers, so it is not left alone";
  }
  EXPECT_FALSE(failures.empty());
  const auto alone = finish({job(4, 2)});
  ASSERT_FALSE(alone) << "the finisher sets it aside";
  EXPECT_EQ(alone.error().code, ErrorCode::invalid);
}

TEST_F(OutcomeRouterTest, AnUnavailableDatabaseIsReported) {
  outcomes.away = {2};
  ASSERT_TRUE(finish({job(1, 1), job(1, 2)}));
  EXPECT_EQ(failures, std::vector<std::string>{"away"});
}

TEST_F(OutcomeRouterTest, OutcomesFailWhenTheOwnDatabaseIsUnavailable) {
  outcomes.away = {1};
  const auto done = finish({job(1, 0), job(1, 1)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  EXPECT_EQ(outcomes.asked.size(), 1U) << "all of them are kept, so none is written yet";
}

}  // namespace
}  // namespace tocsin
