// The `sql` handler: functions of the business that end the job they are called for.
#include <signal.h>

#include "integration/live_node.h"

namespace tocsin {
namespace {

class SqlHandler : public LiveNode {
 protected:
  void SetUp() override {
    database.query(R"(
      CREATE SCHEMA shop;
      CREATE TABLE shop.seen (job_id bigint, biz_id text, at timestamptz DEFAULT clock_timestamp());
      GRANT USAGE ON SCHEMA shop TO tocsin_handler;
      GRANT INSERT, SELECT ON shop.seen TO tocsin_handler)");
  }
  // A PL/pgSQL function shop.NAME that notes the job and then does what `body` says.
  void define(const std::string& name, const std::string& body) {
    database.query("CREATE OR REPLACE FUNCTION shop." + name +
                   "(job tocsin.job) RETURNS jsonb LANGUAGE plpgsql AS $f$ BEGIN "
                   "INSERT INTO shop.seen (job_id, biz_id) VALUES (job.job_id, job.biz_id); " +
                   body + " RETURN NULL; END $f$");
  }
  Json type(const std::string& function, Json more = Json::object()) {
    more["handler"] = {{"kind", "sql"}, {"function", "shop." + function}};
    if (!more.contains("backoff")) more["backoff"] = {{"delays_ms", {10}}};
    return more;
  }
  void put(const std::string& name, const std::string& body, Json more = Json::object()) {
    define(name, body);
    put_type(name, type(name, std::move(more)));
  }
  Json ends(const std::string& id, const std::string& wanted) {
    EXPECT_TRUE(becomes(id, wanted)) << job(id).dump();
    return job(id);
  }
  std::int64_t seen(const std::string& id) {
    return database.number("SELECT count(*) FROM shop.seen WHERE job_id = " + id);
  }
  std::string last_error(const Json& of) { return of["errors"].empty() ? "" : of["errors"].back()["message"]; }
};

TEST_F(SqlHandler, ASuperusersNodeCallsNoFunctionUnlessAllowed) {
  put("quick", "");
  ends(create("quick", 0), "done");
  const auto warns = [&] {
    return rest().get("/readyz").body["warnings"].dump().find("superuser") != std::string::npos;
  };
  EXPECT_TRUE(warns()) << "even when it is allowed";
  start({"--allow-superuser-handlers=false"});
  EXPECT_TRUE(warns());
  const Reply refused = rest().put("/v1/types/other", type("quick"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.body["field"], "handler.kind") << refused.text;
  const std::string id = create("quick", 0);
  put_noop();
  ends(create("noop", 0), "done");  // all that was due before it has had its turn
  EXPECT_EQ(status(id), "pending");
  EXPECT_EQ(seen(id), 0);
}

TEST_F(SqlHandler, TheAnswerDecidesTheOutcome) {
  put("done", "");
  put("dead", "RETURN '{\"dead\": \"no such order\"}'::jsonb;");
  put("again", "IF job.attempts < 3 THEN RETURN '{\"retry_ms\": 20}'::jsonb; END IF;");
  put("odd", "RETURN '{\"maybe\": 1}'::jsonb;", {{"max_attempts", 2}});
  const std::string done = create("done", 0), dead = create("dead", 0), again = create("again", 0),
                    odd = create("odd", 0);
  EXPECT_EQ(ends(done, "done")["attempts"], 1);
  EXPECT_EQ(last_error(ends(dead, "dead")), "no such order");
  EXPECT_EQ(ends(again, "done")["attempts"], 3);
  EXPECT_EQ(seen(again), 3) << "what it did before it asked for another attempt is kept";
  const Json strange = ends(odd, "dead");
  EXPECT_EQ(strange["attempts"], 2);
  EXPECT_NE(last_error(strange).find("{\"maybe\": 1}"), std::string::npos) << strange.dump();
  EXPECT_EQ(seen(odd), 0) << "an answer that means nothing undoes what was done";
}

TEST_F(SqlHandler, TheFunctionSeesTheRowOfTheView) {
  database.query("CREATE TABLE shop.given AS SELECT j AS job, ''::text AS said FROM tocsin.job j LIMIT 0");
  database.query("GRANT INSERT ON shop.given TO tocsin_handler");
  put("look", "INSERT INTO shop.given VALUES (job, job.attribute->>'total');");
  const std::string id = create({{"biz_type", "look"},
                                 {"biz_id", "o-1"},
                                 {"delay_ms", 0},
                                 {"attribute", {{"total", 99}}},
                                 {"idempotency_key", "k"}});
  const Json told = ends(id, "done");
  const auto row = database.query(
      "SELECT (job).job_id, (job).biz_id, (job).biz_type, (job).status, (job).attempts, (job).max_attempts,"
      " (job).idempotency_key, (job).shard, (job).node, (job).errors, said, (job).finished_at IS NULL,"
      " (SELECT to_jsonb(g.job) - 'status' - 'fire_at' - 'gmt_modified' - 'finished_at' = to_jsonb(j) - 'status' -"
      " 'fire_at' - 'gmt_modified' - 'finished_at' FROM tocsin.job j WHERE j.job_id = (g.job).job_id)"
      " FROM shop.given g")[0];
  EXPECT_EQ(row[0].as<std::string>(), id);
  EXPECT_EQ(row[1].as<std::string>(), "o-1");
  EXPECT_EQ(row[2].as<std::string>(), "look");
  EXPECT_EQ(row[3].as<std::string>(), "running");
  EXPECT_EQ(row[4].as<int>(), 1);
  EXPECT_EQ(row[5].as<int>(), 16);
  EXPECT_EQ(row[6].as<std::string>(), "k");
  EXPECT_EQ(row[7].as<int>(), told["shard"].get<int>());
  EXPECT_EQ(row[8].as<std::string>(), told["node"]);
  EXPECT_EQ(row[9].as<std::string>(), "[]");
  EXPECT_EQ(row[10].as<std::string>(), "99");
  EXPECT_TRUE(row[11].as<bool>());
  EXPECT_TRUE(row[12].as<bool>()) << "column by column what the view says";
}

TEST_F(SqlHandler, AFailingJobUndoesNoOtherJobOfItsBatch) {
  put("picky", "IF job.biz_id LIKE 'bad%' THEN RAISE EXCEPTION 'no % here', job.biz_id; END IF;",
      {{"max_attempts", 2}});
  Json jobs = Json::array();
  for (int i = 0; i < 200; ++i) {
    const std::string name = i % 50 == 17 ? "bad-" : "good-";
    jobs.push_back({{"biz_type", "picky"}, {"biz_id", name + std::to_string(i)}, {"delay_ms", 200}});
  }
  ASSERT_EQ(rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status, 201);
  EXPECT_TRUE(eventually([&] { return count("done") == 196 && count("dead") == 4; }));
  EXPECT_EQ(database.number("SELECT count(*) FROM shop.seen"), 196);
  EXPECT_EQ(database.number("SELECT count(DISTINCT job_id) FROM shop.seen"), 196);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE status = 'done' AND attempts > 1"), 0)
      << "nor costs them an attempt";
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job, jsonb_array_elements(errors) e"
                            " WHERE status = 'dead' AND e->>'message' LIKE '%no ' || biz_id || ' here'"),
            8);
}

TEST_F(SqlHandler, WrongFunctionsAreRefusedByName) {
  define("right", "");
  database.query(R"(
    CREATE FUNCTION shop.takes_text(job text) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
    CREATE FUNCTION shop.takes_two(job tocsin.job, n int) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
    CREATE FUNCTION shop.returns_text(job tocsin.job) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
    CREATE FUNCTION shop.returns_many(job tocsin.job) RETURNS SETOF jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
    CREATE FUNCTION shop.closed(job tocsin.job) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
    REVOKE EXECUTE ON FUNCTION shop.closed FROM PUBLIC;
    CREATE SCHEMA hidden;
    CREATE FUNCTION hidden.fn(job tocsin.job) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb')");
  const std::pair<Json, const char*> table[] = {
      {"shop.missing", "no function"},
      {"nowhere.right", "no function"},
      {"right", "schema.name"},
      {"a.shop.right", "schema.name"},
      {".right", "1 to 63"},
      {"shop.", "1 to 63"},
      {"shop.takes_text", "tocsin.job"},
      {"shop.takes_two", "tocsin.job"},
      {"shop.returns_text", "jsonb"},
      {"shop.returns_many", "jsonb"},
      {"shop.closed", "GRANT EXECUTE"},
      {"hidden.fn", "GRANT USAGE"},
      {"shop.right; DROP", "no function"},
      {7, "string"},
      {nullptr, "string"},
  };
  for (const auto& [function, what] : table) {
    const Reply reply = rest().put("/v1/types/t", {{"handler", {{"kind", "sql"}, {"function", function}}}});
    EXPECT_EQ(reply.status, 400) << function << reply.text;
    EXPECT_EQ(reply.body.value("field", ""), "handler.function") << function << reply.text;
    EXPECT_NE(reply.body.value("detail", "").find(what), std::string::npos) << function << reply.text;
  }
  EXPECT_EQ(rest().put("/v1/types/t", {{"handler", {{"kind", "sql"}}}}).body["field"], "handler.function");
  EXPECT_EQ(
      rest().put("/v1/types/t", {{"handler", {{"kind", "sql"}, {"function", "shop.right"}, {"x", 1}}}}).body["field"],
      "handler.x");
  put_type("t", type("right"));
}

TEST_F(SqlHandler, ADroppedFunctionIsRetriedWithTheReason) {
  put("gone", "", {{"max_attempts", 2}});
  database.query("DROP FUNCTION shop.gone");
  const std::string error = last_error(ends(create("gone", 0), "dead"));
  EXPECT_NE(error.find("shop.gone"), std::string::npos) << error;
  EXPECT_NE(error.find("does not exist"), std::string::npos) << error;
}

// Whatever a function tries, it stays tocsin_handler, and the next function finds a clean session.
TEST_F(SqlHandler, AFunctionCannotLeaveItsRole) {
  const std::pair<const char*, const char*> table[] = {
      {"reads", "PERFORM * FROM tocsin.job_live;"},
      {"writes", "UPDATE tocsin.job_live SET attempts = 0;"},
      {"resets", "RESET ROLE; UPDATE tocsin.job_live SET attempts = 0;"},
      {"sets", "EXECUTE format('SET ROLE %I', session_user); UPDATE tocsin.job_live SET attempts = 0;"},
      {"nobody", "SET ROLE NONE; UPDATE tocsin.job_live SET attempts = 0;"},
      {"authorizes", "RESET SESSION AUTHORIZATION; UPDATE tocsin.job_live SET attempts = 0;"},
      {"configures", "PERFORM set_config('role', session_user, true); UPDATE tocsin.job_live SET attempts = 0;"},
      {"commits", "COMMIT;"},
      {"finishes", "DELETE FROM tocsin.job_history;"},
      {"holds", "EXECUTE 'DECLARE later CURSOR WITH HOLD FOR SELECT 1';"},
      {"drops", "DROP FUNCTION pg_temp.tocsin_call; UPDATE tocsin.job_live SET attempts = 0;"},
  };
  for (const auto& [name, body] : table) {
    put(name, body, {{"max_attempts", 1}});
    const Json told = ends(create(name, 0), "dead");
    EXPECT_NE(last_error(told), "") << told.dump();
    EXPECT_EQ(seen(told["job_id"]), 0) << name;
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE status <> 'dead'"), 0);
}

TEST_F(SqlHandler, AFunctionFindsThePathOfTheSandbox) {
  put("tells", "RETURN jsonb_build_object('dead', current_setting('search_path'));");
  EXPECT_EQ(last_error(ends(create("tells", 0), "dead")), "pg_catalog, pg_temp");
}

TEST_F(SqlHandler, SessionStateOfAFunctionCannotAffectTheFinish) {
  const char* trap =
      "CREATE OR REPLACE FUNCTION pg_temp.equal(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $t$ BEGIN"
      " INSERT INTO shop.trapped VALUES (current_user); RETURN $1 OPERATOR(pg_catalog.=) $2; END $t$;";
  database.query("CREATE TABLE shop.trapped (who text); GRANT ALL ON shop.trapped TO tocsin_handler");
  database.query("GRANT CREATE ON SCHEMA shop TO tocsin_handler");
  // Settings that would change what the finish means, a prepared statement under its name, a trigger at the commit, and
  // the fence itself taken down for those who come next.
  put("litters", std::string("SET search_path = pg_temp, pg_catalog; SET synchronous_commit = off;"
                             " SET statement_timeout = 1; SET lock_timeout = 1;") +
                     trap);
  put("prepares", "EXECUTE 'DEALLOCATE ALL'; EXECUTE 'PREPARE finish AS SELECT 1';");
  put("alters", "ALTER FUNCTION pg_temp.tocsin_call(text, text, tocsin.job[]) SECURITY INVOKER;");
  put("defers", R"(
    EXECUTE 'CREATE FUNCTION shop.late() RETURNS trigger LANGUAGE plpgsql AS $t$ BEGIN
      INSERT INTO shop.trapped VALUES (current_user); RETURN NULL; END $t$';
    CREATE TEMP TABLE late (n int);
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
      EXECUTE FUNCTION shop.late();
    INSERT INTO late VALUES (1);)");
  put("resets", "RESET ROLE; UPDATE tocsin.job_live SET attempts = 0;", {{"max_attempts", 1}});
  for (const char* name : {"litters", "prepares", "alters", "defers"}) {
    const Json told = ends(create(name, 0), "done");
    // A time-out of 1 ms that the function has set may end the statement that resets it, and costs an attempt.
    if (name != std::string_view("litters")) {
      EXPECT_EQ(told["attempts"], 1) << name;
    }
    for (int i = 0; i < 3; ++i) ends(create("resets", 0), "dead");
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM shop.trapped"), 1) << "the trigger has run";
  EXPECT_EQ(database.number("SELECT count(*) FROM shop.trapped WHERE who <> 'tocsin_handler'"), 0);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE biz_type = 'resets' AND status <> 'dead'"), 0);
}

TEST_F(SqlHandler, AHangingFunctionTimesOutAndDelaysNoOtherType) {
  put("hangs", "IF job.biz_id LIKE 'h%' THEN PERFORM pg_sleep(3600); END IF;", {{"ttr_ms", 1500}, {"max_attempts", 3}});
  put("quick", "");
  std::vector<std::string> hanging, neighbours;
  for (int i = 0; i < 2; ++i) {
    hanging.push_back(create({{"biz_type", "hangs"}, {"biz_id", "h" + std::to_string(i)}, {"delay_ms", 0}}));
    neighbours.push_back(create({{"biz_type", "hangs"}, {"biz_id", "n" + std::to_string(i)}, {"delay_ms", 0}}));
  }
  ASSERT_TRUE(eventually([&] { return count("running") > 0; }));
  for (int i = 0; i < 20; ++i) ends(create("quick", 0), "done");
  for (const std::string& id : hanging) EXPECT_EQ(ends(id, "dead")["attempts"], 3);
  for (const std::string& id : neighbours) ends(id, "done");
}

TEST_F(SqlHandler, AFunctionThatKillsItsSessionFailsAlone) {
  // The function's session is ended while it runs.
  database.query("CREATE TABLE shop.victim (pid int); GRANT ALL ON shop.victim TO tocsin_handler");
  database.query(
      "CREATE FUNCTION shop.end_session() RETURNS void LANGUAGE sql SECURITY DEFINER AS "
      "'SELECT pg_terminate_backend(pg_backend_pid()); SELECT pg_sleep(60)'");
  put("killer", "IF job.biz_id = 'killer' THEN PERFORM shop.end_session(); END IF;", {{"max_attempts", 3}});
  Json jobs = Json::array();
  for (int i = 0; i < 30; ++i)
    jobs.push_back(
        {{"biz_type", "killer"}, {"biz_id", i == 15 ? "killer" : "n" + std::to_string(i)}, {"delay_ms", 100}});
  ASSERT_EQ(rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status, 201);
  EXPECT_TRUE(eventually([&] { return count("done") == 29 && count("dead") == 1; }));
  EXPECT_EQ(database.number("SELECT attempts FROM tocsin.job WHERE biz_id = 'killer'"), 3);
  EXPECT_LE(database.number("SELECT max(attempts) FROM tocsin.job WHERE status = 'done'"), 2);
  EXPECT_EQ(database.number("SELECT count(*) FROM shop.seen"), 29);
}

TEST_F(SqlHandler, AFunctionThatRunsBeyondItsTimeIsEndedWithItsSession) {
  put("deaf", "BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; PERFORM pg_sleep(60);",
      {{"ttr_ms", 1000}, {"max_attempts", 1}});
  const Json ended = ends(create("deaf", 0), "dead");
  EXPECT_EQ(ended["attempts"], 1);
  EXPECT_TRUE(eventually([&] {
    return database.number(
               "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%tocsin_call%' AND state = "
               "'active' AND pid <> pg_backend_pid()") == 0;
  })) << "the server learns that nobody waits any more";
}

TEST_F(SqlHandler, SessionStateOfAFunctionIsResetForTheNext) {
  put("heap",
      "CREATE TEMP TABLE heap (n int); INSERT INTO heap VALUES (1); IF (SELECT count(*) FROM heap) > 1 THEN "
      "RAISE 'rows of another job'; END IF;",
      {{"max_attempts", 1}});
  put("kept",
      "CREATE TEMP TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1); IF (SELECT count(*) FROM "
      "kept) > 1 THEN RAISE 'rows of another job'; END IF;",
      {{"max_attempts", 1}});
  put("brief", "CREATE TEMP TABLE brief (n int) ON COMMIT DROP;", {{"max_attempts", 1}});
  put("locks", "PERFORM pg_advisory_lock(4711);", {{"max_attempts", 1}});
  put("fails", "PERFORM pg_advisory_lock(4711); RAISE 'after it has locked';", {{"max_attempts", 1}});
  EXPECT_EQ(last_error(ends(create("fails", 0), "dead")), "function shop.fails: after it has locked");
  const auto locks = [&] {
    return database.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711");
  };
  EXPECT_EQ(locks(), 0);
  for (int i = 0; i < 12; ++i)
    for (const char* type : {"heap", "kept", "brief", "locks"}) create(type, 0);
  EXPECT_TRUE(eventually([&] { return count("done") + count("dead") == 49; }));
  EXPECT_EQ(count("dead"), 1) << database.query("SELECT errors FROM tocsin.job WHERE status = 'dead'")[0][0];
  EXPECT_EQ(locks(), 0);
}

TEST_F(SqlHandler, AFunctionMayCreateTheNextJob) {
  put_noop();
  put("chains", "PERFORM tocsin.create_job('noop', job.biz_id || '-next', clock_timestamp());");
  ends(create("chains", 0), "done");
  EXPECT_TRUE(eventually([&] { return count("done") == 2; }));
}

TEST_F(SqlHandler, AFinishThatTakesTooLongFailsTheAttempt) {
  put("done", "", {{"max_attempts", 2}});
  // What a server says whose time for the statement is over.
  database.query(R"(
    CREATE FUNCTION shop.too_long() RETURNS trigger LANGUAGE plpgsql AS
      $f$ BEGIN RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $f$;
    CREATE TRIGGER too_long BEFORE INSERT ON tocsin.job_history_done FOR EACH ROW EXECUTE FUNCTION shop.too_long())");
  const std::string id = create("done", 0);
  const Json dead = ends(id, "dead");
  EXPECT_EQ(dead["attempts"], 2);
  EXPECT_NE(last_error(dead).find("the end of the job took too long"), std::string::npos) << dead.dump();
  EXPECT_EQ(seen(id), 0) << "what it did is undone";
}

}  // namespace
}  // namespace tocsin
