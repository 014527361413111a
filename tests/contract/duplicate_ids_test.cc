// Ids that two jobs have: after a restore, or after a failover that lost what a sequence had drawn.
#include <algorithm>
#include <functional>
#include <set>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using FinishKind = FinishRequest::Kind;

class DuplicateIds {
 public:
  explicit DuplicateIds(ReportStore& reports) : reports_(reports) {}

  // Both jobs are there: the one that ended last has the id, the other says which id it had.
  void expect_both_kept(const std::string& biz_id, JobId id, JobStatus status, const std::set<JobId>& others = {}) {
    JobFilter filter;
    filter.biz_id = biz_id;
    filter.limit = 10;
    const auto jobs = reports_.list(filter);
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->jobs.size(), 2u + others.size());
    int with_id = 0;
    for (const Job& job : jobs->jobs) {
      if (others.contains(job.job_id)) continue;
      if (job.job_id == id) {
        ++with_id;
        EXPECT_EQ(job.status, status);
      } else {
        EXPECT_EQ(job.status, status);
        ASSERT_FALSE(job.errors.empty());
        EXPECT_NE(job.errors.back().message.find(std::to_string(id)), std::string::npos) << job.errors.back().message;
        EXPECT_EQ(shard_of(job.job_id), shard_of(id));
      }
    }
    EXPECT_EQ(with_id, 1);
  }

 private:
  ReportStore& reports_;
};

TEST_P(StoreContract, ADuplicateIdBlocksNoOutcome) {
  const JobId old = create(due("twice"));
  kill(old);
  const JobId id = create(due("twice")), other = create(due("another"));
  const ClaimedJob claimed = claim_one(id), beside = claim_one(other);
  db->give_id(old, id);
  const std::vector<FinishRequest> batch = {{other, beside.token, FinishKind::done, {}, ""},
                                            {id, claimed.token, FinishKind::dead, {}, "gone"}};
  const auto replies = must(db->store().finish(batch, "node-a"));
  EXPECT_EQ(replies, (std::vector<FinishReply>{FinishReply::applied, FinishReply::applied}));
  EXPECT_EQ(find(other).status, JobStatus::done);
  DuplicateIds(db->reports()).expect_both_kept("twice", id, JobStatus::dead);
}

TEST_P(StoreContract, ADuplicateIdBlocksNoMarkDead) {
  const JobId old = create(due("twice"));
  kill(old);
  NewJob last = due("twice");
  last.max_attempts = 1;
  const JobId id = create(last);
  claim_and_expire(id);
  db->give_id(old, id);
  EXPECT_EQ(must(db->store().mark_dead(std::vector<JobId>{id})), 1);
  DuplicateIds(db->reports()).expect_both_kept("twice", id, JobStatus::dead);
}

// Each verb that ends jobs ends one whose id a finished job of the same table has, and one beside it.
TEST_P(StoreContract, ADuplicateIdBlocksNoVerbThatEndsJobs) {
  set_lateness_limit();
  const auto lease = [&](JobId id) { return FinishRequest{id, claim_one(id).token, FinishKind::done, {}, ""}; };
  struct Ending {
    std::string name;
    JobStatus status;
    std::function<std::size_t(const std::vector<JobId>&)> end;  // how many ended
  };
  const std::vector<Ending> endings = {
      {"fire", JobStatus::done, [&](const auto& ids) { return must(db->store().fire(seen(ids), "n")).size(); }},
      {"fire due", JobStatus::done,
       [&](const auto& ids) { return must(db->store().fire_due(lane_of(ids[0]), WallTime{}, 10, "n")).size(); }},
      {"drop", JobStatus::dead,
       [&](const auto& ids) {
         let_pass(3 * kShort);
         return static_cast<std::size_t>(must(db->store().drop_too_late(lane_of(ids[0]), db->now(), 10, 0, "n")));
       }},
      {"ack", JobStatus::done,
       [&](const auto& ids) {
         const std::vector<FinishRequest> acks{lease(ids[0]), lease(ids[1])};
         const auto replies = must(db->client_store().finish_leased(acks, "n"));
         return static_cast<std::size_t>(std::ranges::count(replies, LeaseReply::applied, &LeaseResult::kind));
       }},
      {"cancel", JobStatus::cancelled,
       [&](const auto& ids) {
         const auto replies = must(db->client_store().cancel(ids, LockWait::some_seconds));
         return static_cast<std::size_t>(std::ranges::count(replies, CancelReply::Kind::cancelled, &CancelReply::kind));
       }},
      {"cancel together", JobStatus::cancelled,
       [&](const auto& ids) {
         ChangeBatch batch;
         batch.cancels = ids;
         const auto replies = change_together(batch).cancels;
         return static_cast<std::size_t>(std::ranges::count(replies, CancelReply::Kind::cancelled, &CancelReply::kind));
       }},
      {"cancel by key", JobStatus::cancelled, [&](const auto&) {
         ChangeBatch batch;
         batch.key_cancels = {{"cancel by key", {}}};
         return change_together(batch).key_cancels.front().cancelled.size();
       }}};
  for (const Ending& ending : endings) {
    SCOPED_TRACE(ending.name);
    const JobId old = create(due(ending.name));
    if (ending.status == JobStatus::dead)
      kill(old);
    else if (ending.status == JobStatus::done)
      finish(lease(old));
    else
      cancel(old);
    const JobId id = create(due(ending.name)), other = create(due(ending.name));
    db->give_id(old, id);
    EXPECT_EQ(ending.end({id, other}), 2u);
    EXPECT_EQ(find(other).status, ending.status);
    DuplicateIds(db->reports()).expect_both_kept(ending.name, id, ending.status, {other});
  }
}

// A dead job whose id a live job has. The live one keeps the id; the dead one gets a fresh id, and can be retried.
TEST_P(StoreContract, ADuplicateIdBlocksNoRetry) {
  const auto one_dead = [&](const std::string& biz_id) {
    JobFilter filter;
    filter.biz_id = biz_id;
    filter.status = JobStatus::dead;
    return must(db->reports().list(filter)).jobs.size() == 1;
  };
  ClientStore::RetryMany request;
  request.type_id = type_id;
  for (const bool is_by_id : {true, false}) {
    const std::string biz_id = is_by_id ? "by id" : "by type";
    SCOPED_TRACE(biz_id);
    const JobId old = create(due(biz_id)), other = create(due("another"));
    kill(old);
    let_pass(kShort);
    kill(other);
    const JobId id = create(due(biz_id));
    db->give_id(old, id);
    if (is_by_id) {
      const auto replies = must(db->client_store().retry_each(std::vector{id, other}));
      EXPECT_EQ(must(replies[0]).kind, ChangeReply::Kind::pending) << "the live one";
      EXPECT_EQ(must(replies[1]).kind, ChangeReply::Kind::changed);
    } else {
      EXPECT_EQ(must(db->client_store().retry_many(request)), 1);
    }
    EXPECT_EQ(find(other).status, JobStatus::pending);
    EXPECT_TRUE(one_dead(biz_id));
    EXPECT_EQ(must(db->client_store().retry_many(request)), 1);
    EXPECT_FALSE(one_dead(biz_id));
    EXPECT_EQ(find(id).status, JobStatus::pending);
  }
}

// A call is all or nothing: one row that the store refuses refuses all of it.
TEST_P(StoreContract, ARefusedRowRefusesItsWholeCall) {
  set_lateness_limit();
  const auto jobs = create({due("same"), due("same"), due("same")});
  const Lane lane = lane_of(jobs[0]);
  const auto expect_invalid = [](const auto& reply) {
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::invalid) << reply.error().message;
  };
  let_pass(3 * kShort);
  db->refuse(jobs[0]);
  expect_invalid(db->store().fire(seen(jobs), "n"));
  expect_invalid(db->store().fire_due(lane, WallTime{}, 10, "n"));
  expect_invalid(db->store().drop_too_late(lane, db->now(), 10, 0, "n"));
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::pending, 3}}));
  EXPECT_EQ(must(db->store().drop_too_late(lane, db->now(), 1, 1, "n")), 1) << "the one behind it";
  const ClaimedJob refused = claim_one(jobs[0], kShort), other = claim_one(jobs[2]);
  const std::vector<FinishRequest> outcomes = {{jobs[2], other.token, FinishKind::done, {}, ""},
                                               {jobs[0], refused.token, FinishKind::done, {}, ""}};
  expect_invalid(db->store().finish(outcomes, "n"));
  EXPECT_EQ(find(jobs[2]).status, JobStatus::running);
  db->refuse_nothing();
  EXPECT_EQ(must(db->store().finish(outcomes, "n")).front(), FinishReply::applied);
}

TEST_P(StoreContract, RefusedRowsCostNoOtherJobItsClaim) {
  std::vector<NewJob> asked;
  for (int i = 0; i < 40; ++i) asked.push_back(due("order-" + std::to_string(i)));
  const auto jobs = create(asked);
  const std::vector<Duration> ttr(jobs.size(), kLong);
  std::set<JobId> refused = {jobs[20], jobs[33]};
  refused.insert(jobs.begin() + 2, jobs.begin() + 14);  // many side by side, and first of all
  for (const JobId id : refused) db->refuse_claim(id);
  const ClaimTicket all = ticket();
  const Claims claims = must(db->store().claim(seen(jobs), ttr, all));
  EXPECT_EQ(claims.won.size(), jobs.size() - refused.size());
  EXPECT_EQ(must(db->store().claimed_with(all, jobs)).size(), claims.won.size())
      << "a repeated question finds them all";
  std::set<JobId> told;
  for (const RefusedClaim& each : claims.refused) {
    told.insert(each.job_id);
    EXPECT_EQ(each.why.code, ErrorCode::invalid);
  }
  EXPECT_EQ(told, refused);
  const std::vector<JobId> left(refused.begin(), refused.end());
  const std::vector<Duration> left_ttr(left.size(), kLong);
  EXPECT_EQ(must(db->store().claim(seen(left), left_ttr, ticket())).refused.size(), left.size());
  db->refuse_nothing();
  EXPECT_EQ(must(db->store().claim(seen(left), left_ttr, ticket())).won.size(), left.size());
}

TEST_P(StoreContract, AClaimOfALaneEndsBeforeARefusedRow) {
  std::vector<NewJob> asked(8, due("same"));
  const auto jobs = create(asked);  // of one time: they are claimed in the order of their ids
  const Lane lane = lane_of(jobs[0]);
  db->refuse_claim(jobs[5]);
  std::vector<JobId> won;
  DueSpan span;
  // Claims until a claim is complete or refused; false: refused.
  const auto claim_all = [&] {
    for (;;) {
      const auto claims = db->store().claim_due(lane, span, 10, kLong, ticket());
      if (!claims) return claims.error().code != ErrorCode::invalid;
      for (const ClaimedJob& each : claims->won) won.push_back(each.job.job_id);
      if (!claims->is_cut_short) return true;
    }
  };
  EXPECT_FALSE(claim_all());
  EXPECT_EQ(won, std::vector<JobId>(jobs.begin(), jobs.begin() + 5));
  won.clear();
  span.begin_after({find(jobs[5]).fire_at, jobs[5]});
  EXPECT_TRUE(claim_all());
  EXPECT_EQ(won, std::vector<JobId>(jobs.begin() + 6, jobs.end()));
}

// What a node still knows of a job that a failover has lost changes nothing of the job that has its id now.
TEST_P(StoreContract, AnIdLostInAFailoverIsReusedSafely) {
  db->stop_standby();
  const JobId lost = create(due());
  const ClaimedJob claimed = claim_one(lost);
  db->fail_over();
  --created_;
  NewJob another = due();
  another.type_id = other_type_id;
  const JobId id = create(another);
  ASSERT_EQ(id, lost);
  const FinishRequest outcome{lost, claimed.token, FinishKind::done, {}, ""};
  EXPECT_EQ(finish(outcome), FinishReply::stale);
  const std::vector<Candidate> remembered = {{lost, type_id, {}}};
  const std::vector<Duration> ttr = {kLong};
  EXPECT_TRUE(must(db->store().claim(remembered, ttr, ticket())).won.empty());
  EXPECT_TRUE(must(db->store().fire(remembered, "node-a")).empty());
  const ClaimedJob now = claim_one(id);
  EXPECT_NE(now.token, claimed.token);
  EXPECT_EQ(finish(outcome), FinishReply::stale);
  const std::vector<Extension> extension = {{{lost, claimed.token}, kLong}};
  EXPECT_EQ(must(db->client_store().extend(extension)).front().kind, LeaseReply::stale);
  EXPECT_EQ(find(id).status, JobStatus::running);
}

TEST_P(StoreContract, NewIdsAreGreaterThanAllStoredOnes) {
  std::vector<NewJob> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(due("order-" + std::to_string(i)));
  const auto first = create(jobs);
  for (const JobId id : first) kill(id);  // where only the sequence can tell that their ids are taken
  db->begin_ids_anew();
  const JobId highest = *std::ranges::max_element(first);
  for (const JobId id : create(jobs)) EXPECT_GT(id, highest);
  EXPECT_GT(create(keyed("k", in(kLong))), highest);
}

}  // namespace
}  // namespace tocsin
