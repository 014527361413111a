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
  void lock(const std::string& status, const std::string& mode = "SHARE") {
    const std::string table = "tocsin.job_history_" + status;
    const auto leaf =
        database.query("SELECT relid::regclass::text FROM pg_partition_tree('" + table +
                       "') WHERE isleaf AND relid::regclass::text ~ to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')");
    ASSERT_EQ(leaf.size(), 1U);
    lock_.exec("LOCK TABLE " + std::string(leaf[0][0].c_str()) + " IN " + mode + " MODE");
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

// VACUUM FULL or REINDEX of one day keeps readers away: whether a job has ended cannot be read. What was cancelled
// beside it is told all the same.
class UnreadableDay : public LockedTable {
 protected:
  void SetUp() override {
    SessionConfig impatient = config();
    impatient.lock_timeout_ms = 50;
    brief_ = std::make_unique<Session>(impatient);
    store = std::make_unique<PgClientStore>(*brief_, kShards);
  }
  static constexpr JobId kUnknown = 999 * 1024;
  std::unique_ptr<PgClientStore> store;

 private:
  std::unique_ptr<Session> brief_;
};

TEST_F(UnreadableDay, LeavesNoCancelOfManyIdsUntold) {
  const std::vector<JobId> ids{create("a"), kUnknown};
  lock("done", "ACCESS EXCLUSIVE");
  const auto replies = must(store->cancel(ids, LockWait::none));
  EXPECT_EQ(replies[0].kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(replies[1].kind, CancelReply::Kind::locked);
  EXPECT_FALSE(store->cancel({&kUnknown, 1}, LockWait::none)) << "it says nothing about any job";
}

TEST_F(UnreadableDay, LeavesNoRequestBesideItInDoubt) {
  ChangeBatch batch;
  batch.cancels = {create("a"), kUnknown};
  batch.key_cancels = {{"b", {}}};
  batch.changes = {{create("c"), {}}, {kUnknown, {}}, {kUnknown, {}}};
  create("b");
  lock("done", "ACCESS EXCLUSIVE");
  const auto replies = must(store->change_together(batch));
  EXPECT_EQ(must(replies.cancels[0]).kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(must(replies.changes[0]).kind, ChangeReply::Kind::changed);
  for (const Error& error : {replies.cancels[1].error(), replies.changes[1].error(), replies.changes[2].error()})
    EXPECT_EQ(error.code, ErrorCode::conflict) << error.message << ": it did not happen";
  EXPECT_EQ(replies.key_cancels[0].error().code, ErrorCode::in_doubt) << "its other jobs cannot be read";
}

TEST_F(UnreadableDay, LeavesNoRetryBesideItInDoubt) {
  const JobId job = dead(1).front();
  const std::vector<JobId> ids{job, kUnknown};
  lock("done", "ACCESS EXCLUSIVE");
  const auto replies = must(store->retry_each(ids));
  EXPECT_EQ(must(replies[0]).kind, ChangeReply::Kind::changed);
  EXPECT_EQ(replies[1].error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace tocsin
