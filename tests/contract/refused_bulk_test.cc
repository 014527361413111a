// Bulk operations whose tables are locked, or refuse what they write. On PostgreSQL alone.
#include "contract/dead_jobs.h"
#include "ports/row_refusal.h"
#include "postgres/pg_type_store.h"

namespace tocsin {
namespace {

class RefusedBulk : public DeadJobs {
 protected:
  void create(int n) {
    std::vector<NewJob> jobs;
    for (int i = 1; i <= n; ++i) {
      NewJob& job = jobs.emplace_back();
      job.type_id = 1;
      job.biz_id = "order-" + std::to_string(i);
      job.when.in = std::chrono::hours(1);
    }
    must(client_store.create(jobs, CreateMode::each_by_itself));
  }
  SessionConfig hasty() const {
    SessionConfig hasty = unpinned();
    hasty.lock_timeout_ms = 100;
    return hasty;
  }
  // Batches until it is done or an Error.
  Result<BulkBatch> run(const Bulk& bulk) {
    for (int i = 0; i < 100; ++i) {
      auto batch = bulks.run_batch(bulk, 500);
      if (!batch || batch->is_done) return batch;
    }
    return Error{ErrorCode::unavailable, "it does not end", ""};
  }

  PgBulkStore bulks{hasty(), kShards};
};

// Retention takes them away with their day, and leaves their counts.
TEST_F(RefusedBulk, CountsTheDeadJobsThatAreThere) {
  dead(3);
  database.query("INSERT INTO tocsin.job_count (type_id, status, n) VALUES (1, 4, 100)");
  BulkRequest request;
  request.action = BulkAction::retry;
  request.filter.type_id = 1;
  EXPECT_EQ(must(bulks.count(request)), 3);
}

TEST_F(RefusedBulk, WaitsForALockedTableAndMissesNoJob) {
  using Case = std::pair<BulkAction, const char*>;
  for (const auto& [action, table] : {Case{BulkAction::run, "job_live"}, Case{BulkAction::reschedule, "job_live"},
                                      Case{BulkAction::cancel, "job_history"}, Case{BulkAction::retry, "job_live"},
                                      Case{BulkAction::retry, "job_history_dead"}}) {
    SCOPED_TRACE(std::string(to_string(action)) + " " + table);
    database.query("DELETE FROM tocsin.job_live");
    database.query("DELETE FROM tocsin.job_history");
    if (action == BulkAction::retry)
      dead(3);
    else
      create(3);
    const Bulk bulk = start(bulks, action, 3);
    pqxx::connection other(database.url());
    pqxx::work lock(other);
    lock.exec("LOCK TABLE tocsin." + std::string(table) + " IN SHARE MODE");
    for (int i = 0; i < 3; ++i) {
      const auto batch = run(bulk);
      ASSERT_FALSE(batch);
      EXPECT_EQ(batch.error().field, kLocked);
    }
    lock.abort();
    EXPECT_EQ(must(run(bulk)).changed, 3);
  }
}

// The control database may refuse the removal after another one has carried it out.
TEST_F(RefusedBulk, WaitsWhileTheRemovalOfATypeIsUndecided) {
  dead(3);
  Session own{{database.url(), "types"}};
  PgTypeStore types(own);
  BizType type = must(types.find("noop")).value();
  const Bulk bulk = start(bulks, BulkAction::retry, 3);
  ASSERT_EQ(must(types.remove("noop", TypeStore::Registry::copy, std::nullopt)), TypeStore::RemoveReply::removed);
  for (int i = 0; i < 3; ++i) {
    const auto batch = run(bulk);
    ASSERT_FALSE(batch) << "an end would mean that it misses them";
    EXPECT_EQ(batch.error().code, ErrorCode::conflict);
  }
  type.gmt_modified += std::chrono::hours(1);
  ASSERT_TRUE(types.mirror({&type, 1}));
  EXPECT_EQ(must(run(bulk)).changed, 3);
}

TEST_F(RefusedBulk, WaitsWhileARemovalHasTheTypeLocked) {
  dead(3);
  const Bulk bulk = start(bulks, BulkAction::retry, 3);
  database.query("UPDATE tocsin.biz_type SET removal_at = now()");
  pqxx::connection other(database.url());
  pqxx::work removal(other);
  removal.exec("SELECT FROM tocsin.biz_type FOR UPDATE");
  for (int i = 0; i < 3; ++i) {
    const auto batch = run(bulk);
    ASSERT_FALSE(batch) << "an end would mean that it misses them";
    EXPECT_EQ(batch.error().field, kLocked);
  }
  removal.abort();  // the removal is given up
  EXPECT_EQ(must(run(bulk)).changed, 3);
}

TEST_F(RefusedBulk, MissesJobsOfRemovedTypes) {
  dead(3);
  const Bulk bulk = start(bulks, BulkAction::retry, 3);
  database.query("UPDATE tocsin.biz_type SET removed_at = now()");
  const auto batch = run(bulk);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->changed, 0);
}

TEST_F(RefusedBulk, WaitsWhileEveryJobIsRefused) {
  create(20);
  const Bulk bulk = start(bulks, BulkAction::cancel, 20);
  refuse("job_history", "true");
  for (int i = 0; i < 3; ++i) {
    const auto batch = run(bulk);
    ASSERT_FALSE(batch);
    EXPECT_NE(batch.error().message.find("it is refused"), std::string::npos) << batch.error().message;
  }
  refuse_nothing();
  EXPECT_EQ(must(run(bulk)).changed, 20);
}

TEST_F(RefusedBulk, EndsIfOnlySomeJobsAreRefused) {
  create(2 * kMostRefusedInARow + 6);
  const Bulk bulk = start(bulks, BulkAction::cancel, 2 * kMostRefusedInARow + 6);
  refuse("job_history", "NEW.biz_id ~ '[02468]$'");
  EXPECT_EQ(must(run(bulk)).changed, kMostRefusedInARow + 3);
}

// Batches of all sizes reach the first refused job before the jobs in front of it have been passed.
TEST_F(RefusedBulk, CountsARefusedJobAmongLockedOnesOnce) {
  create(1'100);
  const Bulk bulk = start(bulks, BulkAction::cancel, 1'100);
  refuse("job_history", "NEW.biz_id IN ('order-500', 'order-800')", "23514");
  pqxx::connection other(database.url());
  pqxx::work lock(other);
  lock.exec("SELECT FROM tocsin.job_live WHERE biz_id NOT IN ('order-500', 'order-800') FOR UPDATE");
  for (int i = 0; i < 50; ++i) must(bulks.run_batch(bulk, 500));
  lock.abort();
  EXPECT_EQ(must(run(bulk)).changed, 1'098);
}

TEST_F(RefusedBulk, PassesARefusedJobThatAnotherTransactionFreesMeanwhile) {
  create(2);
  const Bulk bulk = start(bulks, BulkAction::cancel, 2);
  pqxx::connection other(database.url());
  other.set_variable("application_name", "'holder'");
  pqxx::work lock(other);
  lock.exec("SELECT FROM tocsin.job_live WHERE biz_id = 'order-1' FOR UPDATE");
  refuse("job_history",
         "(SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = 'holder') >= 0",
         "23514");
  EXPECT_EQ(must(run(bulk)).changed, 0);
  EXPECT_EQ(live(), 2);
}

}  // namespace
}  // namespace tocsin
