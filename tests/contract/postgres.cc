// The contract, on PostgreSQL.
#include <pqxx/pqxx>

#include "base/system_clock.h"
#include "contract/postgres_database.h"
#include "postgres/pg_bulk_store.h"
#include "postgres/pg_client_store.h"
#include "postgres/pg_function_store.h"
#include "postgres/pg_job_store.h"
#include "postgres/pg_maintenance.h"
#include "postgres/pg_member_store.h"
#include "postgres/pg_permit_store.h"
#include "postgres/pg_report_store.h"
#include "postgres/pg_type_store.h"
#include "support/contract/bulk_contract.h"

namespace tocsin {
namespace {

class PostgresBusiness final : public Business {
 public:
  explicit PostgresBusiness(const std::string& url) : connection_(url) {}
  WallTime read_clock() override {
    return WallTime(
        Duration(tx_.exec1("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0].as<std::int64_t>()));
  }
  JobId create(const NewJob& job) override {
    const auto micros = job.when.in ? job.when.in->count() : job.when.at->time_since_epoch().count();
    const char* from = job.when.in ? "clock_timestamp()" : "timestamptz 'epoch'";
    return tx_
        .exec_params1(
            std::string("SELECT tocsin.create_job((SELECT name FROM tocsin.biz_type WHERE type_id = $1), $2, ") + from +
                " + $3::bigint * interval '1 microsecond', NULL, $4)",
            job.type_id, job.biz_id, micros, job.idempotency_key ? job.idempotency_key->c_str() : nullptr)[0]
        .as<JobId>();
  }
  std::string cancel(JobId job) override {
    return tx_.exec_params1("SELECT tocsin.cancel_job($1)", job)[0].as<std::string>();
  }
  void commit() override { tx_.commit(); }

 private:
  pqxx::connection connection_;
  pqxx::work tx_{connection_};
};

// Its data members are the stores, each with a session of its own.
class PostgresFixture final : public StoreFixture {
 public:
  PostgresFixture() : database_(fresh()), watch_(database_.url()) {
    watch_.prepare("clock", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
  }

  JobStore& store() override { return store_; }
  JobStore& other_store() override { return other_store_; }
  ClientStore& client_store() override { return client_store_; }
  ClientStore& other_client_store() override { return other_client_store_; }
  ReportStore& reports() override { return reports_; }
  TypeStore& types() override { return types_; }
  BulkStore& bulks() override { return bulks_; }
  MemberStore& members() override { return members_; }
  MemberStore& other_members() override { return other_members_; }
  PermitStore& permits() override { return permits_; }
  PermitStore& other_permits() override { return other_permits_; }
  FunctionStore& functions() override {
    if (!functions_) {
      define_functions();
      functions_ = std::make_unique<PgFunctionStore>(SessionConfig{database_.url(), "contract"}, clock_);
    }
    return *functions_;
  }
  int noted(const std::string& biz_id) override {
    pqxx::nontransaction tx(watch_);
    return tx.exec_params1("SELECT count(*) FROM shop.noted WHERE biz_id = $1", biz_id)[0].as<int>();
  }
  void end_members_session(NodeId) override {
    member_session_.disconnect();
    // The server notices on its own time; the row names the session.
    pqxx::nontransaction tx(watch_);
    while (tx.exec1("SELECT EXISTS (SELECT FROM pg_stat_activity a JOIN tocsin.node n ON a.pid = n.backend_pid"
                    " WHERE a.backend_start = n.backend_start AND a.application_name = 'contract member')")[0]
               .as<bool>()) {
      tx.exec("SELECT pg_stat_clear_snapshot()");
    }
  }
  void set_database_ids(const std::vector<DatabaseId>& database_ids) override {
    std::string list;
    for (const DatabaseId database_id : database_ids) list += (list.empty() ? "" : ",") + std::to_string(database_id);
    pqxx::nontransaction(watch_).exec("UPDATE tocsin.shard_map SET version = version + 1, places = '{" + list + "}'");
  }
  int shards() const override { return PostgresDatabase::kShards; }

  WallTime now() override {
    pqxx::nontransaction tx(watch_);
    return WallTime(Duration(tx.exec_prepared1("clock")[0].as<std::int64_t>()));
  }

  void set_clock_back(Duration by) override {
    pqxx::nontransaction(watch_).exec_params(
        "UPDATE tocsin.job_live SET action_time = action_time + d, fire_at = fire_at + d, "
        "gmt_modified = gmt_modified + d, started_at = started_at + d, late_from = late_from + d "
        "FROM (SELECT $1::bigint * interval '1 microsecond') k (d)",
        by.count());
  }

  void wait_until(WallTime time) override {
    while (now() < time) {
    }
  }

  std::string report_disagreement() override {
    Session session{report_config()};
    const auto folded = PgMaintenance(session).fold_counts();
    if (!folded) return folded.error().message;
    std::string found;
    pqxx::nontransaction tx(watch_);
    // By type: what the counts say, what the slots of each grain say, what the days of creation say.
    for (const auto& row : tx.exec(
             "SELECT t.name, c.status, c.n, r.grain, r.n FROM tocsin.biz_type t JOIN (SELECT type_id, CASE WHEN status "
             "< 2 THEN 0 ELSE status END AS status, sum(n) AS n FROM tocsin.job_count GROUP BY 1, 2) c USING (type_id) "
             "JOIN (SELECT r.grain, r.type_id, v.status, sum(v.n) AS n FROM tocsin.report_slot r CROSS JOIN LATERAL "
             "(VALUES (0, r.created - r.done - r.cancelled - r.dead + r.revived), (2, r.done), (3, r.cancelled), (4, "
             "r.dead - r.revived)) v (status, n) GROUP BY 1, 2, 3 UNION ALL SELECT 0, d.type_id, v.status, sum(v.n) "
             "FROM tocsin.report_created_day d CROSS JOIN LATERAL (VALUES (0, d.created - d.done - d.cancelled - "
             "d.dead), (2, d.done), (3, d.cancelled), (4, d.dead)) v (status, n) GROUP BY 1, 2, 3) r ON r.type_id = "
             "c.type_id AND r.status = c.status WHERE r.n <> c.n")) {
      for (const auto& field : row) found += std::string(field.c_str()) + " ";
      found += "\n";
    }
    const auto sums = tx.exec1(
        "SELECT (SELECT coalesce(sum(created), 0) FROM tocsin.report_slot WHERE grain = 3), (SELECT coalesce(sum(n), "
        "0) FROM tocsin.report_delay_day), (SELECT coalesce(sum(dead), 0) FROM tocsin.report_slot WHERE grain = 3), "
        "(SELECT coalesce(sum(n), 0) FROM tocsin.report_death)");
    if (sums[0] != sums[1]) found += "delays of jobs are not as many as jobs\n";
    if (sums[2] != sums[3]) found += "reasons of deaths are not as many as deaths\n";
    return found;
  }

  std::unique_ptr<Business> begin_business() override { return std::make_unique<PostgresBusiness>(database_.url()); }
  void lock(JobId job) override {
    locker_ = std::make_unique<pqxx::connection>(database_.url());
    lock_ = std::make_unique<pqxx::work>(*locker_);
    const std::string of_job =
        " WHERE shard = " + std::to_string(shard_of(job)) + " AND job_id = " + std::to_string(job) + " FOR UPDATE";
    if (lock_->exec("SELECT FROM tocsin.job_live" + of_job).empty())
      lock_->exec1("SELECT FROM tocsin.job_history_dead" + of_job);
  }
  void unlock() override {
    lock_.reset();
    locker_.reset();
  }
  void leave(Shard shard) override {
    pqxx::nontransaction(watch_).exec_params("SELECT tocsin.set_shards_here(array_remove(tocsin.shards_here(), $1))",
                                             static_cast<int>(shard));
  }
  void come_home() override { pqxx::nontransaction(watch_).exec("SELECT tocsin.set_shards_here(NULL)"); }
  void give_id(JobId finished, JobId id) override {
    pqxx::nontransaction(watch_).exec("UPDATE tocsin.job_history SET job_id = " + std::to_string(id) +
                                      " WHERE job_id = " + std::to_string(finished));
  }
  void refuse(JobId job, Refusal how) override { refuse_if("job.job_id = " + std::to_string(job), how, refusals_); }
  void refuse_claim(JobId job) override {
    refuse_if("NEW.job_id = " + std::to_string(job), Refusal::of_values, refused_claims_);
  }
  void refuse_new(const std::string& biz_id, Refusal how) override {
    refuse_if("TG_OP = 'INSERT' AND job.biz_id = '" + biz_id + "'", how, refusals_);
  }
  void refuse_nothing() override {
    refused_claims_.clear(), refusals_.clear();
    if (!std::exchange(is_refusing_, false)) return;
    pqxx::nontransaction(watch_).exec("DROP FUNCTION public.refuse() CASCADE");
  }
  void stop_standby() override {
    standby_sequence_ = pqxx::nontransaction(watch_).exec1("SELECT nextval('tocsin.job_seq')")[0].as<std::int64_t>();
  }
  void fail_over() override {
    database_.lose_jobs();
    begin_ids_at(standby_sequence_);
  }
  void begin_ids_anew() override { begin_ids_at(1); }

  ~PostgresFixture() override {
    unlock();  // a test that failed may hold the table, which the trigger needs
    refuse_nothing();
  }

 private:
  static constexpr int kLockTimeoutMs = 50;

  // `condition`: on `job`, the row. Every write of a live job executes the trigger; only a claim gives it a token.
  void refuse_if(const std::string& condition, Refusal how, std::string& refusals) {
    refusals += "IF " + condition + " THEN RAISE EXCEPTION 'it is refused' USING ERRCODE = '" +
                (how == Refusal::of_values ? "23514" : "P0001") + "'; END IF; ";
    pqxx::work tx(watch_);
    tx.exec(
        "CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE job "
        "tocsin.job_live; BEGIN job := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END; IF TG_OP = 'UPDATE' AND "
        "NEW.claim_token IS NOT NULL AND NEW.claim_token IS DISTINCT FROM OLD.claim_token THEN " +
        refused_claims_ + "RETURN NEW; END IF; " + refusals_ + "RETURN job; END $$");
    if (!std::exchange(is_refusing_, true))
      tx.exec(
          "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON tocsin.job_live FOR EACH ROW EXECUTE FUNCTION "
          "public.refuse()");
    tx.commit();
  }

  void begin_ids_at(std::int64_t last) {
    pqxx::nontransaction(watch_).exec("SELECT setval('tocsin.job_seq', " + std::to_string(last) + ")");
    for (Session* session : {&session_, &other_session_, &client_session_, &other_client_session_})
      session->disconnect();
  }

  static PostgresDatabase& fresh() {
    static PostgresDatabase database;
    database.empty();
    return database;
  }

  void define_functions() {
    pqxx::work tx(watch_);
    tx.exec(
        "DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; CREATE TABLE shop.noted (biz_id text);"
        "GRANT USAGE ON SCHEMA shop TO tocsin_handler; GRANT INSERT ON shop.noted TO tocsin_handler");
    const std::pair<const char*, const char*> table[] = {
        {"done", "RETURN NULL;"},
        {"later", "RETURN '{\"retry_ms\": 3600000}'::jsonb;"},
        {"dead", "RETURN '{\"dead\": \"gone\"}'::jsonb;"},
        {"odd", "RETURN '7'::jsonb;"},
        {"raises",
         "IF job.biz_id ~ '^\\d' THEN RAISE EXCEPTION 'raised' USING ERRCODE = job.biz_id; END IF; RETURN NULL;"},
        {"read_only", "PERFORM set_config('transaction_read_only', 'on', true); RETURN NULL;"},
        {"picky", "IF job.biz_id LIKE 'bad%' THEN RAISE EXCEPTION 'not %', job.biz_id; END IF; RETURN NULL;"}};
    for (const auto& [name, body] : table) {
      tx.exec(
          std::string("CREATE FUNCTION shop.") + name +
          "(job tocsin.job) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shop.noted VALUES (job.biz_id); " +
          body + " END $$");
    }
    tx.commit();
  }

  SessionConfig config() const { return {database_.url(), "contract", 15'000, kLockTimeoutMs, true}; }
  SessionConfig report_config() const { return {database_.url(), "contract", 15'000, kLockTimeoutMs, false}; }

  PostgresDatabase& database_;
  SystemClock clock_;
  pqxx::connection watch_;
  bool is_refusing_ = false;               // the trigger is there
  std::string refusals_, refused_claims_;  // its statements
  std::int64_t standby_sequence_ = 0;
  Session session_{config()}, other_session_{config()}, client_session_{config()}, other_client_session_{config()},
      report_session_{report_config()};
  PgJobStore store_{session_, clock_}, other_store_{other_session_, clock_};
  PgClientStore client_store_{client_session_, PostgresDatabase::kShards},
      other_client_store_{other_client_session_, PostgresDatabase::kShards};
  PgReportStore reports_{report_session_, PostgresDatabase::kShards};
  PgTypeStore types_{report_session_};
  PgBulkStore bulks_{report_config(), PostgresDatabase::kShards};
  SessionConfig member_config() const { return {database_.url(), "contract member", 15'000, kLockTimeoutMs, false}; }
  Session member_session_{member_config()}, other_member_session_{report_config()};
  PgMemberStore members_{member_session_, clock_}, other_members_{other_member_session_, clock_};
  PgPermitStore permits_{member_session_, clock_}, other_permits_{other_member_session_, clock_};
  std::unique_ptr<PgFunctionStore> functions_;
  std::unique_ptr<pqxx::connection> locker_;
  std::unique_ptr<pqxx::work> lock_;
};

const auto kPostgres =
    testing::Values(StoreKind{"Postgres", [] { return std::unique_ptr<StoreFixture>(new PostgresFixture); }});
INSTANTIATE_TEST_SUITE_P(Postgres, StoreContract, kPostgres);
INSTANTIATE_TEST_SUITE_P(Postgres, BulkContract, kPostgres);

}  // namespace
}  // namespace tocsin
