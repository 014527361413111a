// Which claims wait for the disk. On PostgreSQL alone: the fake has no disk.
#include <gtest/gtest.h>

#include <array>

#include "postgres/pg_job_store.h"
#include "support/manual_clock.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class DurableClaim : public ::testing::Test {
 protected:
  // A deferred trigger runs in the commit, which reads synchronous_commit right after it.
  DurableClaim() {
    database.query(
        "CREATE TABLE public.commits (is_durable text);"
        "CREATE FUNCTION public.note_commit() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN INSERT INTO public.commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END$$;"
        "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('hook', "
        "'{\"kind\":\"webhook\"}', 30000, 3, '{}', '{}')");
    for (JobId& id : jobs) id = database.number("SELECT tocsin.create_job('hook', 'order', '2026-01-01')");
    type = static_cast<TypeId>(database.number("SELECT type_id FROM tocsin.biz_type"));
    const auto table =
        database.query("SELECT DISTINCT tableoid::regclass::text FROM tocsin.job_live")[0][0].as<std::string>();
    database.query("CREATE CONSTRAINT TRIGGER note AFTER UPDATE ON " + table +
                   " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note_commit()");
    EXPECT_TRUE(store.warm_up());
  }
  std::string commit_of(bool is_durable, JobId id) {
    const Candidate job{id, type, WallTime{}};
    const Duration ttr = std::chrono::seconds(30);
    return of(store.claim({&job, 1}, {&ttr, 1}, {id, "node-a", is_durable}));
  }
  std::string commit_of_due(bool is_durable) {
    return of(store.claim_due({shard_of(jobs[0]), type}, {}, 1, std::chrono::seconds(30), {1, "node-a", is_durable}));
  }
  // The synchronous_commit that the commit of this claim read.
  std::string of(const Result<Claims>& claims) {
    if (!claims || claims->won.size() != 1) return claims ? "nothing claimed" : claims.error().message;
    const auto rows = database.query("DELETE FROM public.commits RETURNING is_durable");
    return rows.size() == 1 ? rows[0][0].as<std::string>() : std::to_string(rows.size()) + " commits";
  }

  TestDatabase database{4};
  Session session{{database.url(), "durable"}};
  const ManualClock clock;
  PgJobStore store{session, clock};
  std::array<JobId, 4> jobs{};
  TypeId type = 0;
};

TEST_F(DurableClaim, WaitsForTheDiskAndOnlyADurableOneDoes) {
  EXPECT_EQ(commit_of(true, jobs[0]), "on");
  EXPECT_EQ(commit_of(false, jobs[1]), "off");
  EXPECT_EQ(commit_of_due(true), "on");
  EXPECT_EQ(commit_of_due(false), "off");
}

}  // namespace
}  // namespace tocsin
