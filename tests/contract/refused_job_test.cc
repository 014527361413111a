// Batches with a job whose values only the database refuses. On PostgreSQL alone: the refusal is a constraint.
#include <gtest/gtest.h>

#include "postgres/pg_client_store.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class RefusedJob : public ::testing::TestWithParam<bool> {
 protected:
  RefusedJob() {
    database.add_noop_type();
    database.query("ALTER TABLE tocsin.job_live ADD CONSTRAINT no_bad_job CHECK (biz_id <> 'bad')");
  }
  std::vector<NewJob> jobs() const {
    std::vector<NewJob> jobs(3);
    for (NewJob& job : jobs) {
      job.type_id = 1;
      job.biz_id = &job == &jobs[1] ? "bad" : "good";
      job.when.in = std::chrono::hours(1);
      if (GetParam()) job.idempotency_key = "key " + std::to_string(&job - jobs.data());
    }
    return jobs;
  }
  std::int64_t live() { return database.number("SELECT count(*) FROM tocsin.job_live"); }

  TestDatabase database{4};
  Session session{SessionConfig{database.url()}};
  PgClientStore client_store{session, 4};
};

TEST_P(RefusedJob, CostsNoOtherJobOfItsBatch) {
  for (const CreateMode mode : {CreateMode::each_by_itself, CreateMode::each_but_held}) {
    database.query("DELETE FROM tocsin.job_live");
    const auto replies = client_store.create(jobs(), mode);
    ASSERT_TRUE(replies) << replies.error().message;
    ASSERT_EQ(replies->size(), 3U);
    EXPECT_EQ((*replies)[0].kind, CreateReply::Kind::created);
    EXPECT_EQ((*replies)[1].kind, CreateReply::Kind::invalid);
    EXPECT_TRUE((*replies)[1].is_refused());
    EXPECT_NE((*replies)[1].why, "");
    EXPECT_EQ((*replies)[2].kind, CreateReply::Kind::created);
    EXPECT_EQ(live(), 2);
  }
}

TEST_P(RefusedJob, UndoesABatchThatIsAllOrNothing) {
  const auto replies = client_store.create(jobs(), CreateMode::all_or_nothing);
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, ErrorCode::invalid);
  EXPECT_EQ(live(), 0);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutKeys, RefusedJob, testing::Bool());

}  // namespace
}  // namespace tocsin
