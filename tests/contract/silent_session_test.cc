// A server that does not answer. On PostgreSQL alone: a session of the fake has no wire.
#include <gtest/gtest.h>
#include <signal.h>

#include "postgres/pg_client_store.h"
#include "postgres/pg_job_store.h"
#include "support/manual_clock.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using std::chrono::milliseconds;

class SilentSession : public ::testing::Test {
 protected:
  SilentSession() {
    database.query(
        "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('hook', "
        "'{\"kind\":\"webhook\"}', 30000, 3, '{}', '{}')");
    id = database.number("SELECT tocsin.create_job('hook', 'order', '2026-01-01')");
    type = static_cast<TypeId>(database.number("SELECT type_id FROM tocsin.biz_type"));
    EXPECT_TRUE(store.warm_up());
  }
  Result<Claims> claim_due(std::int64_t seed) {
    return store.claim_due({shard_of(id), type}, {}, 10, std::chrono::hours(1), {seed, "node-a", true});
  }
  std::string status() { return database.query("SELECT status FROM tocsin.job")[0][0].as<std::string>(); }

  static constexpr int kPatient = 5'000;  // ms: the time limit of a call that has none of its own
  TestDatabase database{4};
  Session session{{database.url(), "silent", kPatient, kPatient}};
  const ManualClock clock;
  PgJobStore store{session, clock};
  JobId id = 0;
  TypeId type = 0;
};

TEST_F(SilentSession, AnOutcomeIsWrittenOnAnotherSessionInTime) {
  const auto won = claim_due(7);
  ASSERT_TRUE(won && won->won.size() == 1) << (won ? "nothing won" : won.error().message);
  const FinishRequest request{id, won->won.front().token, FinishRequest::Kind::done, {}, ""};
  {
    pqxx::connection stranger(database.url());
    pqxx::work tx(stranger);
    tx.exec("LOCK tocsin.job_live IN ACCESS EXCLUSIVE MODE");
    store.answer_within(milliseconds(1));
    const auto reply = store.finish({&request, 1}, "node-a");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::in_doubt) << reply.error().message;
  }
  // What was left may have been carried out meanwhile.
  store.answer_within(Duration::max());
  const auto again = store.finish({&request, 1}, "node-a");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_NE(again->front(), FinishReply::busy) << "what was left holds the row no more";
  EXPECT_EQ(session.connections(), 2U);
  EXPECT_EQ(status(), "done");
}

TEST_F(SilentSession, ClaimsUseAnotherSessionInTime) {
  pqxx::connection stranger(database.url());
  pqxx::work tx(stranger);
  tx.exec("LOCK tocsin.job_live IN ACCESS EXCLUSIVE MODE");
  store.answer_within(milliseconds(1));
  const Candidate job{id, type};
  const Duration ttr = std::chrono::hours(1);
  const ClaimTicket ticket{7, "node-a", true};
  const auto code = [](const auto& reply) { return reply ? ErrorCode{} : reply.error().code; };
  // Whether the session is closed while it connects or while it claims is a matter of milliseconds.
  const auto is_given_up = [&](const auto& reply) {
    return !reply && (code(reply) == ErrorCode::in_doubt || code(reply) == ErrorCode::unavailable);
  };
  EXPECT_TRUE(is_given_up(claim_due(7)));
  EXPECT_TRUE(is_given_up(store.claim({&job, 1}, {&ttr, 1}, ticket)));
  EXPECT_TRUE(is_given_up(store.fire({&job, 1}, "node-a")));
  EXPECT_TRUE(is_given_up(store.fire_due(job.lane(), {}, 10, "node-a")));
  EXPECT_TRUE(is_given_up(store.claimed_with(ticket, job.lane())));
}

// A claim that wins jobs after the node has asked what it won would leave them without a runner.
TEST_F(SilentSession, AnAbandonedClaimTakesNoJobsLater) {
  database.query(
      "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_catalog.pg_advisory_xact_lock_shared(1); RETURN NEW; END $$");
  database.query("CREATE TRIGGER hold BEFORE UPDATE ON tocsin.job_live FOR EACH ROW EXECUTE FUNCTION public.hold()");
  {
    pqxx::connection stranger(database.url());
    pqxx::work tx(stranger);
    tx.exec("SELECT pg_advisory_xact_lock(1)");
    store.answer_within(milliseconds(1));
    const auto given_up = claim_due(7);
    ASSERT_FALSE(given_up);
    ASSERT_EQ(given_up.error().code, ErrorCode::in_doubt) << given_up.error().message;
    store.answer_within(Duration::max());
    const auto won = store.claimed_with({7, "node-a", true}, Lane{shard_of(id), type});
    ASSERT_TRUE(won) << won.error().message;
    EXPECT_TRUE(won->empty());
    EXPECT_EQ(database.number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'silent'"), 1);
  }
  const auto won = claim_due(8);
  ASSERT_TRUE(won) << won.error().message;
  ASSERT_EQ(won->won.size(), 1U) << "the claim that was given up holds the row, or has won it";
  EXPECT_EQ(won->won.front().job.attempts, 1);
}

// After a failover that lost the create, its ids may be drawn again.
TEST_F(SilentSession, ACreateInDoubtIsNotTakenForAnotherJob) {
  NewJob job;
  job.type_id = type;
  job.biz_id = "order";
  job.when.in = std::chrono::hours(1);
  PgClientStore client_store(session, 4);
  ASSERT_TRUE(client_store.warm_up());  // draws ids
  database.query(
      "INSERT INTO tocsin.job_live (job_id, shard, action_time, fire_at, gmt_create, gmt_modified, type_id, "
      "max_attempts, biz_id) SELECT (s.last_value + n) * 1024 + tocsin.shard_of('order', 4), tocsin.shard_of('order', "
      "4), now(), now(), "
      "now(), now(), 1, 3, 'stranger' FROM tocsin.job_seq s, generate_series(-32, 64) n "
      "ON CONFLICT DO NOTHING");
  database.query(
      "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_catalog.pg_advisory_xact_lock_shared(1); RETURN NEW; END $$");
  database.query("CREATE TRIGGER hold BEFORE INSERT ON tocsin.job_live FOR EACH ROW EXECUTE FUNCTION public.hold()");
  pqxx::connection stranger(database.url());
  pqxx::work tx(stranger);
  tx.exec("SELECT pg_advisory_xact_lock(1)");
  session.answer_within(milliseconds(500));
  const auto created = client_store.create({&job, 1}, CreateMode::each_by_itself);
  ASSERT_FALSE(created) << "job " << created->front().job_id << " is the stranger's";
  EXPECT_EQ(created.error().code, ErrorCode::in_doubt) << created.error().message;
}

// Stops a server process while this object lives: its connection stays open, and no call is answered.
class StoppedProcess {
 public:
  explicit StoppedProcess(pid_t pid) : pid_(pid) { EXPECT_EQ(::kill(pid_, SIGSTOP), 0); }
  ~StoppedProcess() { ::kill(pid_, SIGCONT); }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

 private:
  const pid_t pid_;
};

int server_process(pqxx::nontransaction& tx) { return tx.exec1("SELECT pg_backend_pid()")[0].as<int>(); }

// Without the question the call waits until its time limit, and a write is in doubt then.
TEST(IdleSession, ReplacesAConnectionThatDoesNotAnswer) {
  TestDatabase database{4};
  Session session{{.url = database.url(), .idle_for = milliseconds(0)}};
  session.answer_within(milliseconds(500));
  const auto first = session.write<int>(server_process);
  ASSERT_TRUE(first) << first.error().message;
  const StoppedProcess silent(*first);
  const auto second = session.write<int>(server_process);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_NE(*second, *first);
  EXPECT_EQ(session.connections(), 2U);
}

// A question before each call would double the round trips of a busy session.
TEST(IdleSession, TrustsAConnectionThatWasJustUsed) {
  TestDatabase database{4};
  Session session{{.url = database.url(), .idle_for = std::chrono::minutes(1)}};
  session.answer_within(milliseconds(500));
  const auto first = session.write<int>(server_process);
  ASSERT_TRUE(first) << first.error().message;
  const StoppedProcess silent(*first);
  const auto second = session.write<int>(server_process);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::in_doubt) << second.error().message;
}

}  // namespace
}  // namespace tocsin
