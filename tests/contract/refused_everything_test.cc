// How many statements a call costs when the database refuses every row. On PostgreSQL alone: a trigger counts them.
#include <gtest/gtest.h>

#include "ports/row_refusal.h"
#include "postgres/pg_client_store.h"
#include "support/must.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class RefusedEverything : public testing::Test {
 protected:
  static constexpr int kShards = 4;
  static constexpr int kRows = 512;
  // The whole, the logarithm of its rows, and the rows that are tried alone.
  static constexpr int kMostTries = 1 + 9 + kMostRefusedInARow;

  RefusedEverything() { database.add_noop_type(); }

  static std::vector<NewJob> jobs() {
    std::vector<NewJob> jobs(kRows);
    for (NewJob& job : jobs) {
      job.type_id = 1;
      job.biz_id = "order-" + std::to_string(&job - jobs.data());
      job.when.in = std::chrono::hours(1);
    }
    return jobs;
  }
  std::vector<JobId> create() {
    std::vector<JobId> ids;
    for (const CreateReply& reply : must(client_store.create(jobs(), CreateMode::all_or_nothing)))
      ids.push_back(reply.job_id);
    return ids;
  }
  // The first row of a statement that changes live jobs ends it.
  void refuse_everything() {
    database.query("CREATE SEQUENCE public.tries");
    database.query(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
        "nextval('public.tries'); RAISE EXCEPTION 'it is refused'; END $$");
    database.query(
        "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON tocsin.job_live FOR EACH ROW EXECUTE FUNCTION "
        "public.refuse()");
  }
  std::int64_t tries() { return database.number("SELECT last_value FROM public.tries"); }

  TestDatabase database{kShards};
  Session session{SessionConfig{database.url()}};
  PgClientStore client_store{session, kShards};
};

TEST_F(RefusedEverything, CostsChangesTheLogarithmOfTheirNumber) {
  const std::vector<JobId> ids = create();
  refuse_everything();
  ChangeBatch batch;
  for (const JobId id : ids) batch.changes.push_back({id, {}});
  for (const auto& reply : must(client_store.change_together(batch)).changes) {
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().field, kRefused);
  }
  EXPECT_LE(tries(), 1 + kMostTries) << "all kinds together, and then this kind";
}

TEST_F(RefusedEverything, CostsRepeatedChangesOfAJobNoTriesOfTheirOwn) {
  const std::vector<JobId> ids = create();
  refuse_everything();
  ChangeBatch batch;
  for (int i = 0; i < kRows; ++i) batch.changes.push_back({ids[0], {}});
  for (const auto& reply : must(client_store.change_together(batch)).changes) EXPECT_FALSE(reply);
  EXPECT_LE(tries(), 2 * kMostTries);
}

TEST_F(RefusedEverything, CostsACancelTheLogarithmOfItsJobs) {
  const std::vector<JobId> ids = create();
  refuse_everything();
  const auto none = client_store.cancel(ids, LockWait::some_seconds);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, kRefused);
  EXPECT_LE(tries(), 1 + kMostTries);
}

TEST_F(RefusedEverything, CostsLeasesTheLogarithmOfTheirNumber) {
  create();
  database.query(
      "UPDATE tocsin.job_live SET status = 1, claim_token = 7, fire_at = now() + interval '1 h', node = 'n', attempts "
      "= 1");
  std::vector<Extension> extensions;
  for (const auto& row : database.query("SELECT job_id FROM tocsin.job_live"))
    extensions.push_back({{row[0].as<JobId>(), 7}, std::chrono::hours(2)});
  refuse_everything();
  for (const LeaseResult& reply : must(client_store.extend(extensions))) EXPECT_EQ(reply.kind, LeaseReply::refused);
  EXPECT_LE(tries(), kMostTries + kMostRefusedInARow) << "halves of halves are tried as well";
}

TEST_F(RefusedEverything, CostsAPartialBatchOfNewJobsTheLogarithmOfTheirNumber) {
  refuse_everything();
  for (const CreateReply& reply : must(client_store.create(jobs(), CreateMode::each_by_itself)))
    EXPECT_EQ(reply.kind, CreateReply::Kind::unwritable);
  EXPECT_LE(tries(), 1 + kMostTries);
}

}  // namespace
}  // namespace tocsin
