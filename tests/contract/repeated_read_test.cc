// A read of a change that loses its connection and runs again. On PostgreSQL alone: the database in memory loses none.
#include <gtest/gtest.h>

#include "postgres/pg_client_store.h"
#include "support/must.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

// `cancel` names an outbox entry that stands for a job. The read that finds this out reads the state of the key next,
// and there the server ends the session, once.
TEST(RepeatedRead, CancelsAJobThatAnotherIdStandsForOnce) {
  constexpr int kShards = 4;
  TestDatabase database(kShards);
  database.add_noop_type();
  NewJob job;
  job.type_id = 1;
  job.biz_id = "order";
  job.when.in = std::chrono::hours(1);
  Session session(SessionConfig{database.url()});
  PgClientStore client_store(session, kShards);
  const auto created = client_store.create({&job, 1}, CreateMode::each_by_itself);
  ASSERT_TRUE(created);
  const JobId id = created->front().job_id;
  const JobId entry = make_job_id(900'000, shard_of("order", kShards));
  database.query("INSERT INTO tocsin.relayed (job_id, source, gmt_create, relayed_at, existing_job_id) VALUES (" +
                 std::to_string(entry) + ", 1, now(), now(), " + std::to_string(id) + ")");
  database.query("CREATE SEQUENCE public.reads; GRANT USAGE ON SEQUENCE public.reads TO PUBLIC");
  database.query(
      "CREATE FUNCTION public.end_once() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
      "IF current_query() LIKE '%SELECT k.ord, l.job_id, l.status%' AND nextval('public.reads') = 1 THEN "
      "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); END IF; RETURN true; END $$");
  database.query("ALTER TABLE tocsin.job_history RENAME TO job_history_rows");
  database.query(
      "CREATE VIEW tocsin.job_history AS SELECT * FROM tocsin.job_history_rows WHERE (SELECT public.end_once())");

  ChangeBatch batch;
  batch.is_retry = true;  // reads the state of keys in a statement of its own
  batch.cancels = {entry};
  batch.key_cancels = {{"no such key", {}}};
  const auto connections = session.connections();
  const auto reply = client_store.change_together(batch);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(session.connections(), connections + 1) << "the session was not ended";
  EXPECT_EQ(must(reply->cancels.at(0)).kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(must(reply->cancels.at(0)).job_id, id);
}

}  // namespace
}  // namespace tocsin
