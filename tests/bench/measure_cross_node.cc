// How late jobs are that come to the right place by a detour: accepted by a node that does not own their shard, or
// created by SQL in a database where it does not live.
#include "base/progress.h"
#include "bench/measurements.h"
#include "bench/workloads.h"
#include "cli/pause.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause(10);  // between creates: no statement is shared then, and no job waits for the machine
constexpr int kDelayMs = 200;

std::int64_t number(pqxx::connection& connection, const std::string& sql) {
  return pqxx::nontransaction(connection).exec1(sql)[0].as<std::int64_t>();
}

void wait_for(pqxx::connection& connection, const std::string& sql, std::int64_t wanted) {
  for (int i = 0; i < 1200; ++i) {
    if (number(connection, sql) == wanted) return;
    pause_for(milliseconds(50));
  }
  throw Failure("not within a minute: " + sql);
}

std::vector<double> column(pqxx::connection& connection, const std::string& sql) {
  std::vector<double> values;
  for (const auto& row : pqxx::nontransaction(connection).exec(sql + " ORDER BY 1"))
    values.push_back(row[0].as<double>());
  if (values.empty()) throw Failure("nothing was measured");
  return values;
}

void add(Results& results, const std::string& prefix, const std::vector<double>& values) {
  results.add(prefix + "p50", quantile(values, 0.5));
  results.add(prefix + "p99", quantile(values, 0.99));
  results.add(prefix + "max", values.back());
}

constexpr const char* kLateness =
    "SELECT extract(epoch FROM started_at - action_time)::float8 * 1000 FROM tocsin.job_history WHERE started_at IS "
    "NOT NULL AND biz_id LIKE ";

}  // namespace

// Two nodes; the business key says which of them accepted the job, its row who fired it.
void measure_cross_node(Bench& bench) {
  const Database database(bench.server);
  Subject first(database.url(), {bench.binary.path, R"({"kind":"noop"})", {"--node-name", "first"}});
  Subject second(database.url(), {bench.binary.path, R"({"kind":"noop"})", {"--node-name", "second"}});
  wait_for(first.sql(), "SELECT count(DISTINCT o) FROM tocsin.shard_map, unnest(owners) o WHERE o <> 0", 2);
  pause_for(milliseconds(3000));  // both have heard of it, and swept
  Progress progress("jobs accepted by both nodes");
  const auto n = bench.sizes.cross_node_jobs;
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_first = i % 2 == 0;
    (is_first ? first : second)
        .rest()
        .send("POST", "/v1/jobs",
              {{"biz_type", kType},
               {"biz_id", (is_first ? "first-" : "second-") + std::to_string(i)},
               {"delay_ms", kDelayMs}});
    progress.show(static_cast<std::int64_t>(i), static_cast<std::int64_t>(n), "jobs");
    pause_for(kPause);
  }
  first.wait_until_finished(static_cast<std::int64_t>(n), "the last of them");
  const std::string acceptor = "'%' AND split_part(biz_id, '-', 1) ";
  add(bench.results, "cross_node.own_", column(first.sql(), kLateness + acceptor + "= node"));
  add(bench.results, "cross_node.", column(first.sql(), kLateness + acceptor + "<> node"));
}

// One node on two databases; all jobs are created in the first, half of them live in the second.
void measure_outbox(Bench& bench) {
  const Database a(bench.server), b(bench.server);
  Subject node(a.url(), {bench.binary, R"({"kind":"noop"})", {"--database", b.url()}});
  pqxx::connection there(b.url());
  wait_for(there, "SELECT count(*) FROM tocsin.biz_type", 1);
  Progress progress("jobs created by SQL");
  const auto n = bench.sizes.cross_node_jobs;
  for (std::size_t i = 0; i < n; ++i) {
    pqxx::nontransaction(node.sql())
        .exec("SELECT tocsin.create_job('" + std::string(kType) + "', 'sql-" + std::to_string(i) +
              "', clock_timestamp() + " + std::to_string(kDelayMs) + " * interval '1 ms')");
    progress.show(static_cast<std::int64_t>(i), static_cast<std::int64_t>(n), "jobs");
    pause_for(kPause);
  }
  wait_for(node.sql(), "SELECT count(*) FROM tocsin.outbox", 0);
  for (pqxx::connection* each : {&node.sql(), &there}) wait_for(*each, "SELECT count(*) FROM tocsin.job_live", 0);
  add(bench.results, "outbox.own_", column(node.sql(), kLateness + std::string("'%'")));
  add(bench.results, "outbox.", column(there, kLateness + std::string("'%'")));
  add(bench.results, "outbox.relay_",
      column(there,
             "SELECT extract(epoch FROM r.relayed_at - h.gmt_create)::float8 * 1000 FROM tocsin.relayed r JOIN "
             "tocsin.job_history h USING (job_id)"));
}

}  // namespace tocsin::bench
