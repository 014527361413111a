// Partial batches whose keys other transactions hold. On PostgreSQL alone: nothing waits in the database in memory.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

#include "postgres/pg_client_store.h"
#include "support/key_holder.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

// Each holder ends before its wait would, so no wait fails: the session's locks have a minute.
TEST(HeldKeys, APartialBatchBeginsNoWaitAfterThreeSeconds) {
  TestDatabase database{4};
  database.add_noop_type();
  std::vector<std::unique_ptr<KeyHolder>> holders;
  std::vector<NewJob> jobs(3);
  for (NewJob& job : jobs) {
    job.type_id = 1;
    job.biz_id = "order";
    job.when.in = std::chrono::hours(1);
    job.idempotency_key = "key " + std::to_string(holders.size());
    holders.push_back(std::make_unique<KeyHolder>(database.url()));
    holders.back()->create(job.biz_id, *job.idempotency_key);
  }
  SessionConfig config{database.url()};
  config.statement_timeout_ms = config.lock_timeout_ms = 60'000;
  Session session(config);
  PgClientStore store(session, 4);
  auto created = std::async(std::launch::async, [&] { return store.create(jobs, CreateMode::each_by_itself); });
  const auto is_over = [&] { return created.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  const auto waits_for = [&](const KeyHolder& holder, const std::string& since) {
    return database.number("SELECT count(*) FROM pg_stat_activity WHERE " + std::to_string(holder.process()) +
                           " = ANY (pg_blocking_pids(pid)) AND query_start < clock_timestamp() - interval '" + since +
                           "'") > 0;
  };
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_TRUE(eventually([&] { return is_over() || waits_for(*holders[i], "1600 ms"); }));
    EXPECT_TRUE(waits_for(*holders[i], "1600 ms")) << "the wait for key " << i << " ended before its holder";
    holders[i].reset();
  }
  EXPECT_TRUE(eventually([&] { return is_over() || waits_for(*holders[2], "0 s"); }));
  EXPECT_TRUE(is_over()) << "a third wait began";
  holders[2].reset();
  const auto replies = created.get();
  ASSERT_TRUE(replies) << replies.error().message;
  std::vector<CreateReply::Kind> kinds;
  for (const CreateReply& reply : *replies) kinds.push_back(reply.kind);
  EXPECT_EQ(kinds, (std::vector{CreateReply::Kind::created, CreateReply::Kind::created, CreateReply::Kind::locked}));
}

}  // namespace
}  // namespace tocsin
