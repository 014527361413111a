// Ids that two jobs have: after a restore, or after a failover that lost what a sequence had drawn.
#include <algorithm>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using FinishKind = FinishRequest::Kind;

class GivenTwice {
 public:
  explicit GivenTwice(ReportStore& reports) : reports_(reports) {}

  // Both jobs are there: the one that ended last has the id, the other says which id it had.
  void expect_both_kept(const std::string& biz_id, JobId id, JobStatus status) {
    JobFilter filter;
    filter.biz_id = biz_id;
    filter.limit = 10;
    const auto jobs = reports_.list(filter);
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->size(), 2u);
    int with_id = 0;
    for (const Job& job : *jobs) {
      if (job.job_id == id) {
        ++with_id;
        EXPECT_EQ(job.status, status);
      } else {
        EXPECT_EQ(job.status, JobStatus::dead);
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

TEST_P(StoreContract, AnIdGivenTwiceStopsNoOutcome) {
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
  GivenTwice(db->reports()).expect_both_kept("twice", id, JobStatus::dead);
}

TEST_P(StoreContract, AnIdGivenTwiceStopsNoBurial) {
  const JobId old = create(due("twice"));
  kill(old);
  NewJob last = due("twice");
  last.max_attempts = 1;
  const JobId id = create(last);
  claim_and_expire(id);
  db->give_id(old, id);
  EXPECT_EQ(must(db->store().mark_dead(std::vector<JobId>{id})), 1);
  GivenTwice(db->reports()).expect_both_kept("twice", id, JobStatus::dead);
}

TEST_P(StoreContract, NewIdsLieBeyondAllThatAreStored) {
  std::vector<NewJob> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(due("order-" + std::to_string(i)));
  const auto first = create(jobs);
  kill(first.back());
  db->begin_ids_anew();
  const JobId highest = *std::ranges::max_element(first);
  for (const JobId id : create(jobs)) EXPECT_GT(id, highest);
  EXPECT_GT(create(keyed("k", in(kLong))), highest);
}

}  // namespace
}  // namespace tocsin
