// Acks, nacks and extensions that one round of the coalescer writes together.
#include <algorithm>

#include "service/request_batches.h"
#include "support/contract/store_fixture.h"
#include "support/lease_kinds.h"

namespace tocsin {
namespace {

using Replies = std::vector<LeaseReply>;
using Round = std::vector<LeaseItem>;
using FinishKind = FinishRequest::Kind;

const Result<Replies> kUnanswered = Error{ErrorCode::unavailable, "not answered", ""};

LeaseItem report(std::vector<FinishRequest> outcomes, Result<Replies>& reply) {
  return {OutcomesAsked{std::move(outcomes), [&reply](const Result<std::vector<LeaseResult>>& results) {
                          reply = results ? Result<Replies>(kinds_of(*results)) : results.error();
                        }}};
}

TEST_P(StoreContract, LeaseRoundsCountAnAckOrANackAndNeverBoth) {
  const std::vector<JobId> ids = create({due("a"), due("b")});
  for (const JobId id : ids) {
    const ClaimToken token = claim_one(id).token;
    const FinishRequest ack{id, token, FinishKind::done, {}, ""}, nack{id, token, FinishKind::retry, kLong, "no"};
    const bool is_ack_first = id == ids.front();
    Result<Replies> first = kUnanswered, second = kUnanswered, third = kUnanswered;
    Round round;
    round.push_back(report({is_ack_first ? ack : nack}, first));
    round.push_back(report({is_ack_first ? nack : ack}, second));
    EXPECT_TRUE(write_leases(db->client_store(), "node-b", std::move(round)).empty());
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->front(), second->front());
    const bool is_acked = (is_ack_first ? *first : *second).front() == LeaseReply::applied;
    EXPECT_EQ((is_acked == is_ack_first ? *second : *first).front(), LeaseReply::stale);
    EXPECT_EQ(find(id).status, is_acked ? JobStatus::done : JobStatus::pending);
    Round repeated;
    repeated.push_back(report({ack, nack}, third));
    EXPECT_TRUE(write_leases(db->client_store(), "node-b", std::move(repeated)).empty());
    ASSERT_TRUE(third);
    EXPECT_EQ(*third, (Replies{LeaseReply::stale, LeaseReply::stale}));
  }
}

TEST_P(StoreContract, LeaseRoundsOfSeveralStatementsAnswerInOrder) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 2'500; ++i) wanted.push_back(due("order-" + std::to_string(i)));
  const std::vector<JobId> ids = create(wanted);
  std::map<JobId, ClaimToken> tokens;
  for (const ClaimedJob& claimed : claim(ids)) tokens[claimed.job.job_id] = claimed.token;
  ASSERT_EQ(tokens.size(), ids.size());
  const std::vector<std::size_t> sizes{600, 600, 1'200, 100};  // no two of the first fit into one statement
  std::vector<Result<Replies>> replies(sizes.size(), kUnanswered);
  Round round;
  for (std::size_t call = 0, next = 0; call < sizes.size(); ++call) {
    std::vector<FinishRequest> outcomes;
    for (std::size_t i = 0; i < sizes[call]; ++i, ++next)
      outcomes.push_back({ids[next], tokens[ids[next]] + (i == call ? 1 : 0), FinishKind::done, {}, ""});
    round.push_back(report(std::move(outcomes), replies[call]));
  }
  EXPECT_TRUE(write_leases(db->client_store(), "node-b", std::move(round)).empty());
  for (std::size_t call = 0; call < sizes.size(); ++call) {
    ASSERT_TRUE(replies[call]) << call;
    Replies expected(sizes[call], LeaseReply::applied);
    expected[call] = LeaseReply::stale;
    EXPECT_EQ(*replies[call], expected) << call;
  }
}

TEST_P(StoreContract, LeaseRoundsReturnLeasesOfLockedRowsForARetry) {
  const std::vector<JobId> ids = create({due("a"), due("b")});
  std::vector<FinishRequest> outcomes;
  for (const JobId id : ids) outcomes.push_back({id, claim_one(id).token, FinishKind::done, {}, ""});
  Result<Replies> locked = kUnanswered, free = kUnanswered;
  Round round;
  round.push_back(report({outcomes[0]}, locked));
  round.push_back(report({outcomes[1]}, free));
  db->lock(ids[0]);
  Round rest = write_leases(db->client_store(), "node-b", std::move(round));
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_FALSE(locked);
  ASSERT_TRUE(free);
  EXPECT_EQ(*free, Replies{LeaseReply::applied});
  db->unlock();
  EXPECT_TRUE(write_leases(db->client_store(), "node-b", std::move(rest)).empty());
  ASSERT_TRUE(locked);
  EXPECT_EQ(*locked, Replies{LeaseReply::applied});
}

}  // namespace
}  // namespace tocsin
