// The database's clock is set back, or another host with another clock takes over: nothing that was claimed becomes due
// before its deadline by the clock as it shows now.
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using FinishKind = FinishRequest::Kind;

TEST_P(StoreContract, AReleaseIsNotDueBeforeItsDeadlineByTheClock) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id);
  db->set_clock_back(kLong);
  EXPECT_EQ(finish({id, claimed.token, FinishKind::release_claim, {}, ""}), FinishReply::applied);
  const Job job = find(id);
  EXPECT_EQ(job.fire_at, job.action_time);
  EXPECT_FALSE(job.started_at);
  EXPECT_TRUE(claim({id}).empty());
}

TEST_P(StoreContract, ARetryIsNotDueBeforeItsDeadlineByTheClock) {
  const JobId soon = create(due("soon")), later = create(due("later"));
  const ClaimedJob first = claim_one(soon), second = claim_one(later);
  db->set_clock_back(kLong);
  EXPECT_EQ(finish({soon, first.token, FinishKind::retry, kShort, "no"}), FinishReply::applied);
  EXPECT_EQ(find(soon).fire_at, find(soon).action_time);
  EXPECT_EQ(finish({later, second.token, FinishKind::retry, 2 * kLong, "no"}), FinishReply::applied);
  EXPECT_GT(find(later).fire_at, find(later).action_time) << "its delay is longer";
}

TEST_P(StoreContract, AnExtensionDoesNotEndBeforeTheDeadlineByTheClock) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id);
  db->set_clock_back(kLong);
  must(db->client_store().extend(std::vector<Extension>{{{id, claimed.token}, kShort}}));
  EXPECT_EQ(find(id).fire_at, find(id).action_time);
}

TEST_P(StoreContract, AJobThatWasRunBeforeItsDeadlineDoesNotWaitForIt) {
  const JobId id = create(later());
  run_now(id);
  const ClaimedJob claimed = claim_one(id);
  EXPECT_EQ(finish({id, claimed.token, FinishKind::release_claim, {}, ""}), FinishReply::applied);
  const ClaimedJob again = claim_one(id);
  EXPECT_EQ(finish({id, again.token, FinishKind::retry, Duration(0), "no"}), FinishReply::applied);
  EXPECT_EQ(claim_one(id).job.attempts, 2);
}

}  // namespace
}  // namespace tocsin
