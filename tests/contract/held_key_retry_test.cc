// Retries of dead jobs whose keys another transaction holds: it has called create_job, which found the dead job. On
// PostgreSQL alone.
#include <optional>

#include "contract/dead_jobs.h"
#include "support/key_holder.h"

namespace tocsin {
namespace {

class HeldKeyRetry : public DeadJobs {
 protected:
  // Until release().
  void hold_keys(const Ids& ids) {
    holder.emplace(database.url());
    for (const JobId id : ids) holder->hold_key_of(id);
  }
  void release() { holder.reset(); }

  std::optional<KeyHolder> holder;
};

TEST_F(HeldKeyRetry, DelaysNoOtherRetryAndIsLocked) {
  using enum ChangeReply::Kind;
  const Ids ids = dead(3);
  hold_keys({ids[1]});
  EXPECT_EQ(retry(ids), (std::vector{changed, locked, changed}));
  release();
  EXPECT_EQ(retry({ids[1]}), std::vector{changed});
}

TEST_F(HeldKeyRetry, BehindManyOthersIsReachedInTurn) {
  using enum ChangeReply::Kind;
  const Ids ids = dead(41);
  hold_keys({ids.begin(), ids.end() - 1});
  EXPECT_EQ(retry(ids).back(), locked) << "a call waits for ten keys at most";
  int calls = 1;
  while (calls < 20 && retry(ids).back() == locked) ++calls;
  EXPECT_LT(calls, 20) << "each call begins behind the keys that an earlier one has found held";
}

TEST_F(HeldKeyRetry, IsLeftOutOfTheRetriesOfItsType) {
  const Ids ids = dead(5);
  hold_keys({ids[0], ids[3]});
  const ClientStore::RetryMany request{.type_id = 1, .from = {}, .to = {}, .limit = 10, .rate_per_s = {}};
  const auto retried = client_store.retry_many(request);
  ASSERT_TRUE(retried) << retried.error().message;
  EXPECT_EQ(*retried, 3);
  release();
  EXPECT_EQ(client_store.retry_many(request).value(), 2);
}

TEST_F(HeldKeyRetry, HidesNoFreeJobBehindTheLimit) {
  const Ids ids = dead(5);
  hold_keys({ids[0], ids[1], ids[2]});
  const ClientStore::RetryMany request{.type_id = 1, .from = {}, .to = {}, .limit = 2, .rate_per_s = {}};
  EXPECT_EQ(must(client_store.retry_many(request)), 2);
  EXPECT_EQ(live(), 2);
  const auto none = client_store.retry_many(request);
  ASSERT_FALSE(none) << "this is not the same as no dead job";
  EXPECT_EQ(none.error().code, ErrorCode::conflict);
}

// PostgreSQL alone can have an Error that concerns the server after a part was committed.
TEST_F(HeldKeyRetry, ThatFailsAfterAPartWasWrittenIsInDoubt) {
  const Ids ids = dead(4);
  refuse("job_live", "NEW.biz_id = 'order-4'", "53100");
  hold_keys({ids[1]});
  const auto retried = client_store.retry_many({.type_id = 1, .from = {}, .to = {}, .limit = 10, .rate_per_s = {}});
  ASSERT_FALSE(retried);
  EXPECT_EQ(retried.error().code, ErrorCode::in_doubt);
  EXPECT_GT(live(), 0);
}

TEST_F(HeldKeyRetry, IsVisitedLastByABulkOperation) {
  const Ids ids = dead(5);
  PgBulkStore bulks{unpinned(), kShards};
  const Bulk bulk = start(bulks, BulkAction::retry, 5);
  hold_keys({ids[1]});
  bool is_done = false;
  std::int64_t changed = 0;
  const auto run_batch = [&] {
    const auto batch = bulks.run_batch(bulk, 10);
    if (!batch) return ADD_FAILURE() << batch.error().message, false;
    EXPECT_FALSE(batch->refusal);
    is_done = batch->is_done;
    changed = batch->changed;
    return true;
  };
  for (int batches = 0; changed < 4 && batches < 20; ++batches) ASSERT_TRUE(run_batch());
  EXPECT_EQ(changed, 4);
  EXPECT_FALSE(is_done);
  release();
  for (int batches = 0; !is_done && batches < 20; ++batches) ASSERT_TRUE(run_batch());
  EXPECT_EQ(changed, 5);
}

}  // namespace
}  // namespace tocsin
