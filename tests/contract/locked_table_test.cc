// Changes of jobs while CREATE INDEX, or anything else, locks a table that some of them write. On PostgreSQL alone.
#include "contract/dead_jobs.h"

namespace tocsin {
namespace {

class LockedTable : public DeadJobs {
 protected:
  JobId create(const std::string& biz_id) {
    NewJob job;
    job.type_id = 1;
    job.biz_id = biz_id;
    job.when.in = std::chrono::hours(1);
    return must(client_store.create({&job, 1}, CreateMode::all_or_nothing)).front().job_id;
  }
  // Locks today's table of history for jobs that end so.
  void lock(const std::string& status) {
    const std::string table = "tocsin.job_history_" + status;
    const auto leaf =
        database.query("SELECT relid::regclass::text FROM pg_partition_tree('" + table +
                       "') WHERE isleaf AND relid::regclass::text ~ to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')");
    ASSERT_EQ(leaf.size(), 1U);
    lock_.exec("LOCK TABLE " + std::string(leaf[0][0].c_str()) + " IN SHARE MODE");
  }

 private:
  pqxx::connection other_{database.url()};
  pqxx::work lock_{other_};
};

TEST_F(LockedTable, OfCancelledJobsFailsNoRescheduleBesideTheCancel) {
  ChangeBatch batch;
  batch.cancels = {create("a"), create("b")};
  batch.key_cancels = {{"b", {}}};
  batch.changes = {{create("c"), {}}};
  lock("cancelled");
  const auto replies = must(client_store.change_together(batch));
  for (const auto& reply : replies.cancels) EXPECT_EQ(must(reply).kind, CancelReply::Kind::locked);
  EXPECT_EQ(must(replies.key_cancels[0]).locked.size(), 1U);
  EXPECT_EQ(must(replies.changes[0]).kind, ChangeReply::Kind::changed);
}

}  // namespace
}  // namespace tocsin
