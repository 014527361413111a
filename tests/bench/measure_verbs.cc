// Every verb of the API over 32 keep-alive connections, beside single-row commits of pgbench in the same run; and what
// a past of many finished jobs adds to a single caller's wait.
#include <array>
#include <chrono>
#include <iostream>

#include "bench/measurements.h"
#include "bench/preload.h"
#include "bench/verb_floor.h"
#include "bench/workloads.h"
#include "bench/wrk.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

const std::string kKeysPerClient = "2000";  // more than a client of pgbench cancels in a measurement

struct VerbTargets {
  std::vector<std::string> ids, keys;
};

// Pending jobs, in the order of their ids. Each verb takes its own part.
VerbTargets targets_of(pqxx::connection& sql) {
  VerbTargets targets;
  pqxx::nontransaction tx(sql);
  for (const auto& row : tx.exec("SELECT job_id, biz_id FROM tocsin.job_live ORDER BY md5(biz_id)")) {
    targets.ids.push_back(row[0].as<std::string>());
    targets.keys.push_back(row[1].as<std::string>());
  }
  return targets;
}

// A Lua table `items`; the two threads of wrk take turns. What runs past the end begins again.
std::string items_of(const std::vector<std::string>& all, std::size_t part, std::size_t parts) {
  const std::size_t each = all.size() / parts;
  std::string lua = "local items = {";
  for (std::size_t i = part * each; i < (part + 1) * each; ++i) lua += '"' + all[i] + "\",";
  return lua +
         "}\nlocal at = 0\nlocal function item() local i = at * 2 + lane - 1; at = at + 1; "
         "return items[i % #items + 1] end\n";
}

std::string verb_create_script(bool has_key) {
  return std::string("local n = 0\nfunction request() n = n + 1\n local id = lane .. '-' .. n .. '-") +
         (has_key ? "keyed" : "plain") + "'\n return wrk.format('POST', '/v1/jobs', nil, '{\"biz_type\":\"" + kType +
         "\",\"biz_id\":\"' .. id .. '\",\"delay_ms\":86400000,\"attribute\":{\"run\":\"verbs\"}" +
         (has_key ? ",\"idempotency_key\":\"k-' .. id .. '\"" : "") + "}') end\n";
}

std::string path_script(const std::string& items, const std::string& method, const std::string& path,
                        const std::string& body = "") {
  const std::string text = body.empty() ? "nil" : "'" + body + "'";
  return items + "function request() local i = item() return wrk.format('" + method + "', '" + path + "', nil, " +
         text + ") end\n";
}

struct TimedVerb {
  const char* name;
  std::string script;
};

std::vector<TimedVerb> verbs_of(const VerbTargets& targets) {
  const std::string all = items_of(targets.ids, 0, 1), all_keys = items_of(targets.keys, 0, 1);
  return {{"create", verb_create_script(false)},
          {"keyed", verb_create_script(true)},
          {"get", path_script(all, "GET", "/v1/jobs/' .. i .. '")},
          {"list", path_script(all_keys, "GET", "/v1/jobs?biz_id=' .. i .. '")},
          {"reschedule", path_script(all, "POST", "/v1/jobs/' .. i .. '/reschedule", R"({"delay_ms":86400000})")},
          {"cancel", path_script(items_of(targets.ids, 0, 3), "POST", "/v1/jobs/' .. i .. '/cancel")},
          {"cancel_key",
           path_script(items_of(targets.keys, 1, 3), "POST", "/v1/jobs/cancel", R"({"biz_id":"' .. i .. '"})")},
          {"run", path_script(items_of(targets.ids, 2, 3), "POST", "/v1/jobs/' .. i .. '/run")}};
}

void note_rate(Bench& bench, const std::string& verb, double rate, double floor) {
  bench.results.add("verbs." + verb, rate);
  bench.results.add("verbs." + verb + "_x", rate / floor);
}

void measure_sql(Bench& bench, Subject& subject, double length_s) {
  const double floor = verb_floor(subject.database(), length_s);
  const std::string create = "\\set n random(1, 1000000000)\nSELECT tocsin.create_job('" + std::string(kType) +
                             "', 'sql-' || :n, '2040-01-01', '{\"run\":\"verbs\"}');\n";
  note_rate(bench, "sql_create", pgbench_rate(subject.database(), create, length_s), floor);
  execute(subject.database(), "SELECT count(tocsin.create_job('" + std::string(kType) +
                                  "', 'key-' || c || '-' || i, '2040-01-01')) FROM generate_series(0, 31) c, "
                                  "generate_series(1, " +
                                  kKeysPerClient + ") i");
  note_rate(
      bench, "sql_cancel_key",
      pgbench_rate(subject.database(),
                   "\\set i :i + 1\nSELECT * FROM tocsin.cancel_jobs('key-' || :client_id || '-' || :i);\n", length_s),
      floor);
}

// What functions with the rights and settings of create_job and cancel_jobs cost when they apply no rule: an insert
// into the floor's table; a row moved from there to another table.
void measure_bare_functions(Bench& bench, Subject& subject, double length_s) {
  const double floor = verb_floor(subject.database(), length_s);
  const std::string head =
      "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = "
      "force_generic_plan AS ";
  execute(subject.database(),
          "CREATE TABLE floor_ended (LIKE floor INCLUDING ALL);"
          "CREATE FUNCTION floor_create(biz_id text) RETURNS void " +
              head +
              "$$ BEGIN INSERT INTO public.floor (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, "
              "shard, max_attempts, biz_id, attribute) VALUES (nextval('public.floor_seq'), '2040-01-01', "
              "'2040-01-01', now(), now(), 1, 0, 3, biz_id, '{\"run\":\"verbs\"}'); END $$;"
              "CREATE FUNCTION floor_cancel(key text) RETURNS void " +
              head +
              "$$ BEGIN WITH d AS (DELETE FROM public.floor f WHERE f.biz_id = key AND f.status = 0 RETURNING f.*) "
              "INSERT INTO public.floor_ended SELECT d.* FROM d; END $$;"
              "SELECT count(floor_create('key-' || c || '-' || i)::text) FROM generate_series(0, 31) c, "
              "generate_series(1, " +
              kKeysPerClient + ") i; ANALYZE floor");
  note_rate(bench, "floor_function",
            pgbench_rate(subject.database(), "\\set n random(1, 1000000000)\nSELECT floor_create('order-' || :n);\n",
                         length_s),
            floor);
  note_rate(bench, "floor_cancel",
            pgbench_rate(subject.database(),
                         "\\set i :i + 1\nSELECT floor_cancel('key-' || :client_id || '-' || :i);\n", length_s),
            floor);
}

// Jobs that finished today, in the order of their numbers, with their counts.
void finish_today(const std::string& database, std::size_t n) {
  execute(
      database,
      "WITH c AS (INSERT INTO tocsin.job_count_delta SELECT type_id, 2, " + std::to_string(n) +
          " FROM tocsin.biz_type WHERE name = '" + kType +
          "') INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, started_at, finished_at, "
          "type_id, shard, status, attempts, max_attempts, biz_id, node, attribute) SELECT "
          "nextval('tocsin.job_seq') * 1024 + k.shard, now(), now(), now(), now(), now(), t.type_id, k.shard, 2, 1, "
          "3, k.biz_id, 'preload', '{\"run\":\"verbs\"}' FROM (SELECT 'past-' || i % (" +
          std::to_string(n) + " / 4) AS biz_id, tocsin.shard_of('past-' || i % (" + std::to_string(n) +
          " / 4), tocsin.shard_count()) AS shard FROM generate_series(1, " + std::to_string(n) +
          ") i OFFSET 0) k, tocsin.biz_type t WHERE t.name = '" + kType + "'");
}

// One caller, one request after the other: the p50 of each verb in ms.
void time_single(Bench& bench, Subject& subject, const std::string& state) {
  constexpr int kEach = 200;
  const auto p50 = [&](const char* verb, const std::function<void(int)>& call) {
    std::vector<double> ms;
    for (int i = 0; i < kEach; ++i) {
      const auto start = std::chrono::steady_clock::now();
      call(i);
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    bench.results.add("past." + state + "_" + verb, median(ms));
  };
  RestClient& rest = subject.rest();
  const auto key = [&](int i) { return state + "-" + std::to_string(i); };
  std::vector<std::string> ids;
  p50("create", [&](int i) {
    ids.push_back(
        rest.send("POST", "/v1/jobs",
                  {{"biz_type", kType}, {"biz_id", key(i)}, {"delay_ms", 86'400'000}, {"idempotency_key", "k"}})
            .at("job_id")
            .get<std::string>());
  });
  const auto id = [&](int i) { return ids[static_cast<std::size_t>(i)]; };
  p50("get", [&](int i) { rest.get("/v1/jobs/" + id(i)); });
  p50("list_key", [&](int i) { rest.get("/v1/jobs?biz_id=" + key(i)); });
  p50("list_past_key", [&](int i) { rest.get("/v1/jobs?biz_id=past-" + std::to_string(1 + i * 97)); });
  p50("list_done", [&](int) { rest.get(std::string("/v1/jobs?status=done&limit=100&biz_type=") + kType); });
  p50("reschedule", [&](int i) { rest.send("POST", "/v1/jobs/" + id(i) + "/reschedule", {{"delay_ms", 86'400'000}}); });
  p50("cancel_key", [&](int i) { rest.send("POST", "/v1/jobs/cancel", {{"biz_id", key(i)}}); });
  p50("cancel_past_key", [&](int i) {
    rest.send("POST", "/v1/jobs/cancel", {{"biz_id", "past-" + std::to_string(i * 89)}});
  });
  p50("get_finished", [&](int i) { rest.get("/v1/jobs/" + id(i)); });
}

}  // namespace

void measure_verbs(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  const double length_s = std::max(2.0, bench.sizes.request_s / 3);
  write_pending(subject.database(), bench.sizes.verb_jobs, "now() + interval '1 day'", Indexes::kept);
  const VerbTargets targets = targets_of(subject.sql());
  for (const TimedVerb& verb : verbs_of(targets)) {
    const double floor = verb_floor(subject.database(), length_s);
    bench.results.add("verbs.floor", floor);
    std::cerr << "  " << verb.name << '\n';
    const WrkReport report = run_wrk(subject.port(), length_s, verb.script);
    note_verb(bench.results, std::string("verbs.") + verb.name, report, floor);
  }
  measure_sql(bench, subject, length_s);
  measure_bare_functions(bench, subject, length_s);
}

void measure_past(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  for (int day = 0; day < 2; ++day)  // no statistics until they are asked for
    for (const char* kind : {"done", "cancelled", "dead"})
      execute(subject.database(),
              std::string("DO $$ BEGIN EXECUTE format('ALTER TABLE tocsin.job_history_") + kind +
                  "_%s SET (autovacuum_enabled = off)', to_char((now() AT TIME ZONE 'UTC')::date + " +
                  std::to_string(day) + ", 'YYYYMMDD')); END $$");
  time_single(bench, subject, "none");
  finish_today(subject.database(), bench.sizes.past_jobs);
  execute(subject.database(), "CHECKPOINT");
  time_single(bench, subject, "unknown");
  execute(subject.database(), "ANALYZE");
  time_single(bench, subject, "known");
}

}  // namespace tocsin::bench
