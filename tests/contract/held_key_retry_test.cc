// Retries of dead jobs whose keys another transaction holds: it has called create_job, which found the dead job. On
// PostgreSQL alone. The session's lock_timeout is longer than its statement_timeout, so a retry that waits for a key as
// long as the session lets it ends with an Error.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "postgres/pg_bulk_store.h"
#include "postgres/pg_client_store.h"
#include "support/key_holder.h"
#include "support/must.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using Ids = std::vector<JobId>;

class HeldKeyRetry : public testing::Test {
 protected:
  static constexpr int kShards = 4;

  HeldKeyRetry() { database.add_noop_type(); }
  // Jobs with keys, which died one after the other.
  Ids dead(int n) {
    Ids ids;
    for (const auto& row : database.query(
             "INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, finished_at, type_id, shard, "
             "status, attempts, max_attempts, biz_id, idempotency_key, body_hash) SELECT (1000000 + i) * 1024 + "
             "tocsin.shard_of(b, 4), t, t, t, t - (n - i) * interval '1 ms', 1, tocsin.shard_of(b, 4), 4, 3, 3, b, "
             "'key', tocsin.body_hash('at ' || (extract(epoch FROM t) * 1000000)::bigint, NULL, NULL) FROM (SELECT " +
             std::to_string(n) +
             ") k (n), generate_series(1, n) i, now() t, LATERAL (SELECT 'order-' || i) x (b) RETURNING job_id"))
      ids.push_back(row[0].as<JobId>());
    return ids;
  }
  // Until release().
  void hold_keys(const Ids& ids) {
    holder.emplace(database.url());
    for (const JobId id : ids) holder->hold_key_of(id);
  }
  void release() { holder.reset(); }
  SessionConfig config() const {
    SessionConfig config{database.url()};
    config.statement_timeout_ms = 5'000;
    config.lock_timeout_ms = 60'000;
    return config;
  }
  SessionConfig unpinned() const {
    SessionConfig unpinned = config();
    unpinned.has_pinned_plans = false;
    return unpinned;
  }
  std::vector<ChangeReply::Kind> retry(const Ids& ids) {
    std::vector<ChangeReply::Kind> kinds;
    std::ranges::transform(must(client_store.retry_each(ids)), std::back_inserter(kinds), &ChangeReply::kind);
    return kinds;
  }

  TestDatabase database{kShards};
  Session session{config()};
  PgClientStore client_store{session, kShards};
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

TEST_F(HeldKeyRetry, IsVisitedLastByABulkOperation) {
  const Ids ids = dead(5);
  PgBulkStore bulks{unpinned(), kShards};
  BulkRequest request;
  request.action = BulkAction::retry;
  request.filter.type_id = 1;
  request.filter_json = "{}";
  const auto placement = bulks.placement();
  ASSERT_TRUE(placement && *placement);
  const auto bulk = bulks.start(request, 5, 1, std::chrono::hours(1), **placement);
  ASSERT_TRUE(bulk && *bulk);
  hold_keys({ids[1]});
  bool is_done = false;
  std::int64_t changed = 0;
  const auto run_batch = [&] {
    const auto batch = bulks.run_batch(**bulk, 10);
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
