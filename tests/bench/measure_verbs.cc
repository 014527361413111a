// Every verb of the API over 32 keep-alive connections, beside single-row commits of pgbench in the same run.
#include <algorithm>
#include <iostream>
#include <utility>

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

// The jobs of a table, mixed. Of pending ones each verb that changes them takes its own part.
VerbTargets targets_of(pqxx::connection& sql, const std::string& table) {
  VerbTargets targets;
  pqxx::nontransaction tx(sql);
  for (const auto& row : tx.exec("SELECT job_id, biz_id FROM " + table + " ORDER BY md5(job_id::text)")) {
    targets.ids.push_back(row[0].as<std::string>());
    targets.keys.push_back(row[1].as<std::string>());
  }
  return targets;
}

// Ids and keys that no job has, in the shape of the others.
VerbTargets unknown_targets(std::size_t n) {
  VerbTargets targets;
  for (std::size_t i = 0; i < n; ++i) {
    targets.ids.push_back(std::to_string((1'000'000'000 + i) * 1'024 + i % 8));
    targets.keys.push_back("unknown-" + std::to_string(i));
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
  bool is_refused = false;  // the answer is 404
};

std::vector<TimedVerb> verbs_of(const VerbTargets& pending, const VerbTargets& finished, const VerbTargets& unknown) {
  const auto gets = [](const VerbTargets& of) {
    return path_script(items_of(of.ids, 0, 1), "GET", "/v1/jobs/' .. i .. '");
  };
  const auto lists = [](const VerbTargets& of) {
    return path_script(items_of(of.keys, 0, 1), "GET", "/v1/jobs?biz_id=' .. i .. '");
  };
  const auto cancels = [](const VerbTargets& of, std::size_t part, std::size_t parts) {
    return path_script(items_of(of.keys, part, parts), "POST", "/v1/jobs/cancel", R"({"biz_id":"' .. i .. '"})");
  };
  return {{"create", verb_create_script(false)},
          {"keyed", verb_create_script(true)},
          {"get", gets(pending)},
          {"get_finished", gets(finished)},
          {"get_unknown", gets(unknown), true},
          {"list", lists(pending)},
          {"list_finished", lists(finished)},
          {"list_unknown", lists(unknown)},
          {"reschedule", path_script(items_of(pending.ids, 0, 1), "POST", "/v1/jobs/' .. i .. '/reschedule",
                                     R"({"delay_ms":86400000})")},
          {"cancel", path_script(items_of(pending.ids, 0, 3), "POST", "/v1/jobs/' .. i .. '/cancel")},
          {"cancel_key", cancels(pending, 1, 3)},
          {"cancel_finished_key", cancels(finished, 0, 1)},
          {"cancel_unknown_key", cancels(unknown, 0, 1)},
          {"run", path_script(items_of(pending.ids, 2, 3), "POST", "/v1/jobs/' .. i .. '/run")}};
}

// `prepare`: SQL that comes after the floor, which empties its table.
void time_sql(Bench& bench, Subject& subject, const std::string& verb, const std::string& prepare,
              const std::string& script) {
  const double length_s = std::max(2.0, bench.sizes.request_s / 3);
  const double floor = verb_floor(subject.database(), length_s);
  if (!prepare.empty()) execute(subject.database(), prepare);
  note_verb(bench.results, "verbs." + verb, run_pgbench(subject.database(), script, length_s), floor);
}

// A call of the function for every key that pgbench will cancel.
std::string for_each_key(const std::string& before, const std::string& after) {
  return "SELECT count((" + before + "'key-' || c || '-' || i" + after +
         ")::text) FROM generate_series(0, 31) c, generate_series(1, " + kKeysPerClient + ") i;";
}

void measure_sql(Bench& bench, Subject& subject) {
  const std::string create = "tocsin.create_job('" + std::string(kType) + "', ";
  time_sql(bench, subject, "sql_create", "",
           "\\set n random(1, 1000000000)\nSELECT " + create + "'sql-' || :n, '2040-01-01', '{\"run\":\"verbs\"}');\n");
  time_sql(bench, subject, "sql_cancel_key", for_each_key(create, ", '2040-01-01')"),
           "\\set i :i + 1\nSELECT * FROM tocsin.cancel_jobs('key-' || :client_id || '-' || :i);\n");
}

// What functions with the rights and settings of create_job and cancel_jobs cost when they apply no rule: an insert
// into the floor's table; a row moved from there to another table.
void measure_bare_functions(Bench& bench, Subject& subject) {
  const std::string head =
      "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = "
      "force_generic_plan AS ";
  time_sql(bench, subject, "floor_function",
           "CREATE FUNCTION floor_create(biz_id text) RETURNS void " + head +
               "$$ BEGIN INSERT INTO public.floor (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, "
               "shard, max_attempts, biz_id, attribute) VALUES (nextval('public.floor_seq'), '2040-01-01', "
               "'2040-01-01', now(), now(), 1, 0, 3, biz_id, '{\"run\":\"verbs\"}'); END $$",
           "\\set n random(1, 1000000000)\nSELECT floor_create('order-' || :n);\n");
  time_sql(bench, subject, "floor_cancel",
           "CREATE TABLE floor_ended (LIKE floor INCLUDING ALL);"
           "CREATE FUNCTION floor_cancel(key text) RETURNS void " +
               head +
               "$$ BEGIN WITH d AS (DELETE FROM public.floor f WHERE f.biz_id = key AND f.status = 0 RETURNING f.*) "
               "INSERT INTO public.floor_ended SELECT d.* FROM d; END $$;" +
               for_each_key("floor_create(", ")") + "ANALYZE floor",
           "\\set i :i + 1\nSELECT floor_cancel('key-' || :client_id || '-' || :i);\n");
}

}  // namespace

void measure_verbs(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  const double length_s = std::max(2.0, bench.sizes.request_s / 3);
  write_pending(subject.database(), bench.sizes.verb_jobs, "now() + interval '1 day'", Indexes::kept);
  write_finished_today(subject.database(), bench.sizes.verb_history_jobs);
  const VerbTargets pending = targets_of(subject.sql(), "tocsin.job_live");
  const VerbTargets finished = targets_of(subject.sql(), "(SELECT * FROM tocsin.job_history LIMIT 50000) h");
  for (TimedVerb& verb : verbs_of(pending, finished, unknown_targets(50'000))) {
    const double floor = verb_floor(subject.database(), length_s);
    bench.results.add("verbs.floor", floor);
    std::cerr << "  " << verb.name << '\n';
    WrkReport report = run_wrk(subject.port(), length_s, verb.script);
    if (verb.is_refused) std::swap(report.answered, report.unexpected);
    note_verb(bench.results, std::string("verbs.") + verb.name, report, floor);
  }
  measure_sql(bench, subject);
  measure_bare_functions(bench, subject);
}

}  // namespace tocsin::bench
