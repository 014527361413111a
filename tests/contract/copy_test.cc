// Rows of a shard that does not live in the database: what replication has brought before the shard is opened, or what
// has moved away. They stay as they are, and hold up no job of another shard.
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using FinishKind = FinishRequest::Kind;

constexpr Shard kAway = 1, kHere = 2;

std::vector<JobId> claimed_ids(const std::vector<ClaimedJob>& jobs) {
  std::vector<JobId> ids;
  for (const ClaimedJob& claimed : jobs) ids.push_back(claimed.job.job_id);
  return ids;
}

std::vector<JobId> fired_ids(const std::vector<Fired>& jobs) {
  std::vector<JobId> ids;
  for (const Fired& fired : jobs) ids.push_back(fired.job_id);
  return ids;
}

TEST_P(StoreContract, CopiesAreNotClaimedAndOthersAre) {
  const JobId copy = create_in(kAway), other = create_in(kHere);
  db->leave(kAway);
  EXPECT_EQ(claimed_ids(claim({copy, other})), std::vector<JobId>{other});
  EXPECT_TRUE(claim({copy}).empty()) << "over its own table";
  EXPECT_TRUE(must(db->store().claim_due(lane_of(copy), {}, 10, kLong, ticket())).won.empty());
  EXPECT_EQ(find(copy).attempts, 0);
  db->come_home();
  EXPECT_EQ(claimed_ids(must(db->store().claim_due(lane_of(copy), {}, 10, kLong, ticket())).won),
            std::vector<JobId>{copy});
}

TEST_P(StoreContract, CopiesAreNotFiredAndOthersAre) {
  const JobId copy = create_in(kAway), other = create_in(kHere);
  const JobId locked = create_in(kHere), skipped = create_in(kHere);
  db->leave(kAway);
  EXPECT_EQ(fired_ids(must(db->store().fire(seen({copy, other}), "node-a"))), std::vector<JobId>{other});
  db->lock(locked);  // from now on locked rows are skipped
  EXPECT_EQ(fired_ids(must(db->store().fire(seen({copy, locked, skipped}), "node-a"))), std::vector<JobId>{skipped});
  db->unlock();
  EXPECT_TRUE(must(db->store().fire_due(lane_of(copy), {}, 10, "node-a")).empty());
  EXPECT_EQ(find(copy).status, JobStatus::pending);
  db->come_home();
  EXPECT_EQ(fired_ids(must(db->store().fire_due(lane_of(copy), {}, 1, "node-a"))), std::vector<JobId>{copy});
}

TEST_P(StoreContract, CopiesKeepTheirOutcomesWaitingAndOthersAreWritten) {
  for (const FinishKind kind : {FinishKind::done, FinishKind::dead, FinishKind::retry, FinishKind::release_claim}) {
    const JobId copy = create_in(kAway), other = create_in(kHere);
    const std::vector<FinishRequest> outcomes{{copy, claim_one(copy).token, kind, kLong, "why"},
                                              {other, claim_one(other).token, kind, kLong, "why"}};
    db->leave(kAway);
    EXPECT_EQ(must(db->store().finish(outcomes, "node-a")),
              (std::vector<FinishReply>{FinishReply::busy, FinishReply::applied}));
    EXPECT_EQ(find(copy).status, JobStatus::running);
    db->come_home();
    EXPECT_EQ(finish(outcomes[0]), FinishReply::applied);
  }
}

// Its row may have left with the shard, and then the outcome counts where the shard lives.
TEST_P(StoreContract, AnOutcomeOfAShardThatHasLeftWaitsAlsoWithoutItsRow) {
  const FinishRequest outcome{create_in(kAway) + 1'000 * kMaxShards, 7, FinishKind::done, {}, ""};
  db->leave(kAway);
  EXPECT_EQ(finish(outcome), FinishReply::busy);
  db->come_home();
  EXPECT_EQ(finish(outcome), FinishReply::stale);
}

TEST_P(StoreContract, CopiesKeepTheirLeasesWhateverTheirConsumersSay) {
  const JobId copy = create_in(kAway), other = create_in(kHere);
  const Lease held{copy, claim_one(copy).token}, free{other, claim_one(other).token};
  const WallTime ends = find(copy).fire_at;
  const std::vector<Extension> extensions{{held, 2 * kLong}, {free, 2 * kLong}};
  const std::vector<FinishRequest> acks{{copy, held.token, FinishKind::retry, kLong, "later"},
                                        {other, free.token, FinishKind::retry, kLong, "later"}};
  db->leave(kAway);
  const auto extended = must(db->client_store().extend(extensions));
  EXPECT_EQ(extended[0].kind, LeaseReply::busy);
  EXPECT_EQ(extended[1].kind, LeaseReply::applied);
  const auto finished = must(db->client_store().finish_leased(acks, "node-a"));
  EXPECT_EQ(finished[0].kind, LeaseReply::busy);
  EXPECT_EQ(finished[1].kind, LeaseReply::applied);
  EXPECT_EQ(find(copy).fire_at, ends);
  db->come_home();
  EXPECT_EQ(must(db->client_store().finish_leased(acks, "node-a"))[0].kind, LeaseReply::applied);
}

TEST_P(StoreContract, CopiesDoNotDieOfTheirAgeOrOfTheirLastLease) {
  NewJob once = due("once");
  once.max_attempts = 1;
  const JobId copy = create(once);
  claim_and_expire(copy);
  set_lateness_limit();
  let_pass(std::chrono::milliseconds(2));
  db->leave(shard_of(copy));
  const std::vector<JobId> jobs{copy};
  EXPECT_EQ(must(db->store().mark_dead(jobs)), 0);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(copy), WallTime::max(), 10, 0, "node-a")), 0);
  EXPECT_EQ(find(copy).status, JobStatus::running);
  db->come_home();
  EXPECT_EQ(must(db->store().mark_dead(jobs)), 1);
}

TEST_P(StoreContract, CopiesGiveTheirFunctionsNoWork) {
  const JobId copy = create_in(kAway), other = create_in(kHere);
  const std::vector<FunctionCall> calls{{copy, claim_one(copy).token}, {other, claim_one(other).token}};
  const auto judge = [&](std::size_t n, const std::optional<std::string>&) -> Result<FinishRequest> {
    return FinishRequest{calls[n].job_id, calls[n].token, FinishKind::done, Duration(0), ""};
  };
  db->functions();
  db->leave(kAway);
  const auto reply = must(db->functions().run({"shop", "done"}, calls, std::chrono::minutes(1), judge, "node-a"));
  EXPECT_EQ(reply.failure, "");
  ASSERT_EQ(reply.written.size(), 2U);
  EXPECT_FALSE(reply.written[0]);
  EXPECT_TRUE(reply.written[1]);
  db->come_home();
}

}  // namespace
}  // namespace tocsin
