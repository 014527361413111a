// Claims that are released: the times that their jobs get, and who hears of them.
#include "unit/pipeline/finisher_fixture.h"

namespace tocsin {
namespace {

TEST_F(FinisherTest, ReleasedJobsKeepTheirTimeAndAreHintedAtOnce) {
  know_time();
  now += 40ms;
  ClaimedJob job = claimed(make_job_id(1, 0), 1), foreign = claimed(make_job_id(2, 9), 1);
  job.fire_at_before = foreign.fire_at_before = db_now() - 3s;
  give(job, Outcome::not_started(0s));
  give(foreign, Outcome::not_started(0s));
  step();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].delay, -3s);
  EXPECT_EQ(sent[1].delay, 0s) << "its node may have read the lane already";
  step();
  const auto hints = shared().candidates.pop_some(10);
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_EQ(hints[0].job_id, make_job_id(1, 0));
  EXPECT_LE(hints[0].fire_at, db_now() - 2990ms);
  const auto returned = shared().returned.pop_some(10);
  ASSERT_EQ(returned.size(), 1U) << "the scans must see it, too";
  EXPECT_EQ(returned[0].lane, (Lane{0, 1}));
  EXPECT_EQ(returned[0].due, *job.fire_at_before);
}

TEST_F(FinisherTest, TheLaneOfAReleasedJobThatMemoryRefusesIsBacklog) {
  know_time();
  for (JobId id = 1'000'000'000; shared().known.available(1) > 0; ++id) shared().known.add(id, 1);
  ClaimedJob job = claimed(make_job_id(1, 0), 1);
  job.fire_at_before = db_now() - 3s;
  give(job, Outcome::not_started(0s));
  reply_with(FinishReply::stale);  // or written by a try whose answer was lost
  step();
  step();
  EXPECT_TRUE(shared().due.has_backlog({0, 1}));
}

// Another node may own the shard by now, and its scans may have passed the old time.
TEST_F(FinisherTest, ReleasedJobsAreDueNowAfterTheLeaseIsLost) {
  const JobId released = give_old_release();
  shared().membership.trust_until(now);
  step();
  EXPECT_EQ(sent.at(0).delay, 0s);
  step();
  ASSERT_EQ(told.size(), 1U) << "this node may not be the owner any more";
  EXPECT_EQ(told[0].job_id, released);
}

// A node that is not the owner reads lanes of a pull type, too, for its own consumers.
TEST_F(FinisherTest, JobsNotDeliveredToAConsumerAreDueNow) {
  set_types({biz_type(1, "pull")});
  give_old_release();
  step();
  EXPECT_EQ(sent.at(0).delay, 0s);
}

// The delay is counted when the claim is released, and written when the database answers.
TEST_F(FinisherTest, AReleaseThatWaitsLosesItsOldTimeWithShardOrLease) {
  const auto lose_lease = [&] { shared().membership.trust_until(now); };
  const auto lose_shard = [&] { shared().shards.set(std::make_shared<const std::vector<Shard>>()); };
  const auto lose_nothing = [] {};
  const Error refused{ErrorCode::conflict, "not this one", ""};
  for (const Error& error : {unavailable(), refused}) {
    const auto delay_after = [&](const std::function<void()>& lose) {
      shared().membership.trust_until(MonoTime::max());
      shared().shards.set(std::make_shared<const std::vector<Shard>>(shards));
      know_time();
      ClaimedJob job = claimed(make_job_id(1, 0), 1);
      job.fire_at_before = db_now() - 3s;
      give(job, Outcome::not_started(0s));
      store.on_finish = [&](auto) -> Result<std::vector<FinishReply>> { return error; };
      step();
      lose();
      now += 1s;
      sent.clear();
      reply_with(FinishReply::applied);
      step();
      return sent.at(0).delay;
    };
    EXPECT_EQ(delay_after(lose_nothing), -3s) << error.message;
    EXPECT_EQ(delay_after(lose_shard), 0s) << error.message;
    EXPECT_EQ(delay_after(lose_lease), 0s) << error.message;
  }
}

// Whether the lease ended before the write or after it, the next owner and this node's scans find the job.
TEST_F(FinisherTest, AReleaseDuringALostLeaseIsHintedToBothOwners) {
  give_old_release();
  step();
  ASSERT_EQ(sent.at(0).delay, -3s);
  shared().membership.trust_until(now);
  step();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_LE(told[0].fire_at, db_now() - 2990ms);
  EXPECT_EQ(shared().returned.size(), 1U) << "if this node gets its lease back";
}

TEST_F(FinisherTest, AReleaseIsUnreportedFromItsWriteUntilItsReport) {
  const auto is_unreported = [this] { return shared().unreported.has_any(); };
  give_old_release();
  bool is_unreported_in_write = false;
  store.on_finish = [&](auto) -> Result<std::vector<FinishReply>> {
    is_unreported_in_write = is_unreported();
    return unavailable();  // it may be written
  };
  step();
  EXPECT_TRUE(is_unreported_in_write);
  EXPECT_TRUE(is_unreported());
  now += 1s;
  reply_with(FinishReply::stale);
  step();
  EXPECT_TRUE(is_unreported());
  EXPECT_EQ(shared().returned.size(), 0U);
  step();
  EXPECT_EQ(shared().returned.size(), 1U);
  EXPECT_FALSE(is_unreported());
  give(claimed(make_job_id(2, 0), 1), Outcome::done());
  step();
  EXPECT_FALSE(is_unreported()) << "others give no row an old time";
}

// Its answer may be lost in each try.
TEST_F(FinisherTest, AReleaseThatIsSetAsideIsUnreported) {
  give_old_release();
  store.on_finish = [&](auto) -> Result<std::vector<FinishReply>> {
    return Error{ErrorCode::unavailable, "index is damaged", kRefused};
  };
  step();
  step();
  EXPECT_TRUE(shared().unreported.has_any());
  now += 1s;
  reply_with(FinishReply::applied);
  step();
  step();
  EXPECT_FALSE(shared().unreported.has_any());
}

// A damaged page, a trigger or a right: it may be mended, and until then it stops neither others nor claims.
TEST_F(FinisherTest, AnUnwritableOutcomeIsSetAsideAndNeverDropped) {
  constexpr JobId kCulprit = 3;
  for (JobId id = 1; id <= 5; ++id) {
    ClaimedJob job = claimed(id, 1);
    job.lease_deadline = now + 1s;
    give(job, Outcome::done());
  }
  std::size_t written = 0;
  store.on_finish = [&](std::span<const FinishRequest> requests) -> Result<std::vector<FinishReply>> {
    for (const FinishRequest& request : requests)
      if (request.job_id == kCulprit) return Error{ErrorCode::unavailable, "index is damaged", kRefused};
    written += requests.size();
    return std::vector<FinishReply>(requests.size(), FinishReply::applied);
  };
  MonoTime next = now;
  for (int steps = 0; next <= now && steps < 100; ++steps) next = step();
  EXPECT_EQ(written, 4U) << "without any time passing";
  EXPECT_EQ(events[Counter::set_aside], 1);
  for (int steps = 0; steps < 20; ++steps) {
    now += 1s;
    step();
  }
  EXPECT_EQ(running(), 1U) << "nothing is lost when its lease is over";
  EXPECT_FALSE(shared().has_stuck_outcomes(now));
  reply_with(FinishReply::applied);
  now += 1s;
  step();
  EXPECT_EQ(sent.at(0).job_id, kCulprit);
  EXPECT_EQ(running(), 0U);
}

}  // namespace
}  // namespace tocsin
