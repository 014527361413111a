// A server that does not answer. On PostgreSQL alone: a session of the fake has no wire.
#include <gtest/gtest.h>

#include "postgres/pg_job_store.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class StillClock final : public Clock {
 public:
  MonoTime now() const override { return MonoTime{}; }
};

TEST(SilentSession, AnOutcomeLeavesItInTimeAndIsWrittenOnAnother) {
  TestDatabase database(4);
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('hook', "
      "'{\"kind\":\"webhook\"}', 30000, 3, '{}', '{}')");
  const JobId id = database.number("SELECT tocsin.create_job('hook', 'order', '2026-01-01')");
  constexpr int kPatient = 20'000;  // ms: so long the call would take without a limit of its own
  Session session({database.url(), "silent", kPatient, kPatient});
  const StillClock clock;
  PgJobStore store(session, clock);
  const Candidate job{id, static_cast<TypeId>(database.number("SELECT type_id FROM tocsin.biz_type"))};
  const Duration ttr = std::chrono::hours(1);
  const auto won = store.claim({&job, 1}, {&ttr, 1}, {7, "node-a", true});
  ASSERT_TRUE(won && won->size() == 1) << (won ? "nothing won" : won.error().message);
  const FinishRequest request{id, won->front().token, FinishRequest::Kind::done, {}, ""};
  {
    pqxx::connection stranger(database.url());
    pqxx::work tx(stranger);
    tx.exec("LOCK tocsin.job_live IN ACCESS EXCLUSIVE MODE");
    const auto reply = store.finish({&request, 1}, "node-a", std::chrono::milliseconds(1));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::in_doubt) << reply.error().message;
  }
  // What was left may have been carried out meanwhile, or hold the row for another moment.
  auto again = store.finish({&request, 1}, "node-a");
  while (again && again->front() == FinishReply::busy) again = store.finish({&request, 1}, "node-a");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(session.connections(), 2U);
  EXPECT_EQ(database.query("SELECT status FROM tocsin.job")[0][0].as<std::string>(), "done");
}

}  // namespace
}  // namespace tocsin
