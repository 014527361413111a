// DeadJobs: the base of tests that retry dead jobs on PostgreSQL alone. The session's lock_timeout is longer than its
// statement_timeout, so a statement that waits for a lock as long as the session lets it ends with an Error.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "postgres/pg_bulk_store.h"
#include "postgres/pg_client_store.h"
#include "support/must.h"
#include "support/test_database.h"

namespace tocsin {

class DeadJobs : public testing::Test {
 protected:
  static constexpr int kShards = 4;
  using Ids = std::vector<JobId>;

  DeadJobs() { database.add_noop_type(); }
  // Jobs order-1 to order-n with keys, which died one after the other.
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
  // What is inserted into the table ends with this SQLSTATE if the condition on NEW holds. Of one table at a time.
  void refuse(const std::string& table, const std::string& condition, const std::string& state = "P0001") {
    database.query("CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF " + condition +
                   " THEN RAISE EXCEPTION 'it is refused' USING ERRCODE = '" + state + "'; END IF; RETURN NEW; END $$");
    database.query("CREATE TRIGGER refuse BEFORE INSERT ON tocsin." + table +
                   " FOR EACH ROW EXECUTE FUNCTION public.refuse()");
  }
  void refuse_nothing() { database.query("DROP FUNCTION public.refuse() CASCADE"); }
  std::int64_t live() { return database.number("SELECT count(*) FROM tocsin.job_live"); }

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
  static Bulk start(PgBulkStore& bulks, BulkAction action, std::int64_t matched) {
    BulkRequest request;
    request.action = action;
    request.filter.type_id = 1;
    request.filter_json = "{}";
    request.delay = std::chrono::hours(2);
    return must(bulks.start(request, matched, 1, std::chrono::hours(1), must(bulks.placement()).value())).value();
  }
  std::vector<ChangeReply::Kind> retry(const Ids& ids) {
    std::vector<ChangeReply::Kind> kinds;
    for (const Result<ChangeReply>& reply : must(client_store.retry_each(ids))) kinds.push_back(must(reply).kind);
    return kinds;
  }

  TestDatabase database{kShards};
  Session session{config()};
  PgClientStore client_store{session, kShards};
};

}  // namespace tocsin
