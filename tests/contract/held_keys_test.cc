// Partial batches whose keys other transactions hold. On PostgreSQL alone: nothing waits in the database in memory.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

#include "postgres/pg_client_store.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

// A transaction that creates a job with a key, and stays open until end().
class Holder {
 public:
  Holder(const std::string& url, const std::string& key) : connection_(url), tx_(new pqxx::work(connection_)) {
    tx_->exec("SELECT tocsin.create_job('noop', 'order', '2040-01-01', NULL, '" + key + "')");
    process_ = std::to_string(connection_.backendpid());
  }
  void end() { tx_.reset(); }
  const std::string& process() const { return process_; }

 private:
  pqxx::connection connection_;
  std::unique_ptr<pqxx::work> tx_;
  std::string process_;
};

// Each holder ends before its wait would, so no wait fails.
TEST(HeldKeys, APartialBatchBeginsNoWaitAfterThreeSeconds) {
  TestDatabase database{4};
  database.query(
      "INSERT INTO tocsin.biz_type (type_id, name, handler, ttr_ms, max_attempts, backoff, catch_up) OVERRIDING SYSTEM "
      "VALUE VALUES (1, 'noop', '{\"kind\":\"noop\"}', 30000, 3, '{}', '{}')");
  std::vector<std::unique_ptr<Holder>> holders;
  std::vector<NewJob> jobs(3);
  for (NewJob& job : jobs) {
    job.type_id = 1;
    job.biz_id = "order";
    job.when.in = std::chrono::hours(1);
    job.idempotency_key = "key " + std::to_string(holders.size());
    holders.push_back(std::make_unique<Holder>(database.url(), *job.idempotency_key));
  }
  Session session(SessionConfig{database.url()});
  PgClientStore store(session, 4);
  auto created = std::async(std::launch::async, [&] { return store.create(jobs, CreateMode::each_by_itself); });
  const auto is_over = [&] { return created.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  const auto waits_for = [&](const Holder& holder, const std::string& since) {
    return database.number("SELECT count(*) FROM pg_stat_activity WHERE " + holder.process() +
                           " = ANY (pg_blocking_pids(pid)) AND query_start < clock_timestamp() - interval '" + since +
                           "'") > 0;
  };
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_TRUE(eventually([&] { return is_over() || waits_for(*holders[i], "1600 ms"); }));
    holders[i]->end();
  }
  EXPECT_TRUE(eventually([&] { return is_over() || waits_for(*holders[2], "0 s"); }));
  EXPECT_TRUE(is_over()) << "a third wait began";
  holders[2]->end();
  const auto replies = created.get();
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->back().kind, CreateReply::Kind::locked);
}

}  // namespace
}  // namespace tocsin
