// What slow and numerous businesses cost the others: shared gateways, slow and refusing endpoints, many types.
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <map>

#include "bench/deliveries.h"
#include "bench/measurements.h"
#include "bench/subject.h"
#include "cli/pause.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string webhook_to(const std::string& url) {
  return Json{{"kind", "webhook"}, {"url", url}, {"timeout_ms", 20'000}}.dump();
}

double wal_bytes(Subject& subject) {
  pqxx::nontransaction tx(subject.sql());
  return tx.exec1("SELECT pg_current_wal_lsn() - '0/0'")[0].as<double>();
}

std::map<std::string, double> done_by_type(Subject& subject) {
  pqxx::nontransaction tx(subject.sql());
  std::map<std::string, double> done;
  for (const auto& row : tx.exec("SELECT biz_type, count(*) FROM tocsin.job WHERE status = 'done' GROUP BY 1"))
    done[row[0].as<std::string>()] = row[1].as<double>();
  return done;
}

std::string name_of(int i) { return "type-" + std::to_string(i); }

struct Scans {
  double statements, ms;
};

// So far, by the server's clock.
Scans scans_of(Subject& subject) {
  pqxx::nontransaction tx(subject.sql());
  tx.exec("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
  const auto row = tx.exec1(
      "SELECT coalesce(sum(calls), 0), coalesce(sum(total_exec_time), 0) FROM pg_stat_statements JOIN pg_database d"
      " ON d.oid = dbid WHERE d.datname = current_database() AND query LIKE '%AS reads)%'");
  return {row[0].as<double>(), row[1].as<double>()};
}

// A backlog of six types to one gateway that takes ten seconds for an answer; the requests are worked off in rows of
// 256, so the gateway's rate is 25.6/s.
void measure_gateway(Bench& bench) {
  Deliveries gateway(milliseconds(bench.sizes.gateway_ms));
  Subject subject(bench.server, {bench.binary});
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) names.push_back(name_of(i));
  for (const std::string& name : names) subject.put_type(name, webhook_to(gateway.url()));
  const WallTime start = subject.db_now() + seconds(3);
  for (const std::string& name : names) subject.create(jobs_due_over(start, seconds(1), 2'000, 1, name.c_str()));
  subject.settle();
  // Between two answers: what the first types of all held alone has ended, and whole rounds of answers follow.
  const milliseconds answer(bench.sizes.gateway_ms);
  const WallTime from = start + answer + answer / 2, until = from + bench.sizes.gateway_rounds * answer;
  subject.wait_until(from, "the gateway");
  const auto before = done_by_type(subject);
  const double wal = wal_bytes(subject), back = subject.counter("tocsin_given_back_total");
  subject.wait_until(until, "the gateway");
  const double released = subject.counter("tocsin_given_back_total") - back;
  const double wal_spent = wal_bytes(subject) - wal;
  double all = 0, least = 1e9, most = 1;
  for (const auto& [name, done] : done_by_type(subject)) {
    const double more = done - (before.contains(name) ? before.at(name) : 0);
    all += more;
    least = std::min(least, std::max(more, 1.0));
    most = std::max(most, more);
  }
  const double lasted = std::chrono::duration<double>(until - from).count();
  bench.results.add("isolation.gateway_done", all / lasted);
  bench.results.add("isolation.gateway_released", 100 * released / std::max(1.0, all));
  bench.results.add("isolation.gateway_wal", wal_spent / 1024 / std::max(1.0, all));
  bench.results.add("isolation.gateway_spread", most / least);
}

// A slow endpoint falls behind; jobs that have waited for five seconds are not to start.
void measure_drop_late(Bench& bench) {
  Deliveries gateway(milliseconds(2'000));
  Subject subject(bench.server, {bench.binary});
  subject.rest().send("PUT", "/v1/types/drop_late",
                      {{"handler", Json::parse(webhook_to(gateway.url()))},
                       {"max_attempts", 3},
                       {"catch_up", {{"drop_older_than_ms", 5'000}}}});
  const WallTime start = subject.db_now() + seconds(3);
  subject.create(jobs_due_over(start, seconds(10), 5'000, 1, "drop_late"));
  subject.wait_until(start + seconds(18), "what perishes");
  const auto late = subject.lateness_ms({}, "drop_late");
  bench.results.add("isolation.drop_late_latest", late.empty() ? 0 : late.back() / 1000);
}

// Webhook jobs at 50/s while noop types fire 30,000/s together.
void measure_beside_noop(Bench& bench, int types) {
  Deliveries receiver;
  Subject subject(bench.server, {bench.binary, webhook_to(receiver.url())});
  for (int i = 0; i < types; ++i) subject.put_type(name_of(i));
  const auto lasts = seconds(bench.sizes.isolation_s / 2);
  const std::size_t n = bench.sizes.noop_rate * static_cast<std::size_t>(lasts.count());
  const WallTime start = subject.db_now() + seconds(8 + static_cast<int>(n / 25'000));
  std::vector<std::string> names;
  for (int i = 0; i < types; ++i) names.push_back(name_of(i));
  std::vector<BenchJob> noop = jobs_due_over(start, lasts, n, 2);
  for (std::size_t i = 0; i < noop.size(); ++i) noop[i].type = names[i % names.size()].c_str();
  subject.create(jobs_due_over(start, lasts, static_cast<std::size_t>(50 * lasts.count()), 3));
  subject.create(noop);
  if (subject.db_now() > start) throw Failure("the jobs cannot be created before they are due");
  subject.wait_until(start + lasts + seconds(4), "beside noop");
  const auto late = subject.lateness_ms();
  bench.results.add("isolation.beside_" + std::to_string(types) + "_p50", quantile(late, 0.5));
  bench.results.add("isolation.beside_" + std::to_string(types) + "_p99", quantile(late, 0.99));
}

// A healthy type at 10/s beside endpoints that answer after ten seconds, each with more than it can take.
void measure_beside_slow(Bench& bench, int endpoints) {
  Deliveries healthy, slow(milliseconds(bench.sizes.gateway_ms));
  Subject subject(bench.server, {bench.binary, webhook_to(healthy.url())});
  std::vector<std::string> names;
  for (int i = 0; i < endpoints; ++i) {
    names.push_back(name_of(i));
    subject.put_type(names.back(), webhook_to(slow.url_of(i)));
  }
  const auto lasts = seconds(bench.sizes.isolation_s);
  const WallTime start = subject.db_now() + seconds(8);
  if (endpoints > 0) {
    std::vector<BenchJob> jobs = jobs_due_over(start, lasts, 20'000, 4);
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].type = names[i % names.size()].c_str();
    subject.create(jobs);
  }
  subject.create(jobs_due_over(start, lasts, static_cast<std::size_t>(10 * lasts.count()), 5));
  subject.wait_until(start + lasts + seconds(2), "beside slow endpoints");
  const auto late = subject.lateness_ms();
  bench.results.add("isolation.slow_" + std::to_string(endpoints) + "_p50", quantile(late, 0.5));
  bench.results.add("isolation.slow_" + std::to_string(endpoints) + "_p99", quantile(late, 0.99));
}

// Of 250 types, 50 have an endpoint that refuses connections; or, to compare, handlers in the node.
void measure_refusing(Bench& bench, bool is_refusing) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  tcp::acceptor port(io, tcp::endpoint(boost::asio::ip::address_v4::any(), 0));
  const std::string at = ":" + std::to_string(port.local_endpoint().port()) + "/fire";
  port.close();
  Subject subject(bench.server, {bench.binary});
  std::vector<std::string> names;
  for (int i = 0; i < 250; ++i) {
    names.push_back(name_of(i));
    if (i < 50 && is_refusing)
      subject.put_type(names.back(), webhook_to("http://127.1.0." + std::to_string(i + 1) + at));
    else
      subject.put_type(names.back());
  }
  const WallTime start = subject.db_now() + seconds(5);
  std::vector<BenchJob> jobs = jobs_due_over(start, seconds(5), 5'000, 6);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].type = names[i % 50].c_str();
  subject.create(jobs);
  subject.wait_until(start + seconds(2), "refusing endpoints");
  const Scans before = scans_of(subject);
  const auto lasts = seconds(bench.sizes.isolation_s / 2);
  subject.wait_until(start + seconds(2) + lasts, "refusing endpoints");
  const Scans after = scans_of(subject);
  const std::string name = is_refusing ? "isolation.refusing_" : "isolation.answering_";
  const auto n = static_cast<double>(lasts.count());
  bench.results.add(name + "scans", (after.statements - before.statements) / n);
  bench.results.add(name + "scan_ms", (after.ms - before.ms) / n);
}

// Jobs whose attempts are used up and whose leases have ended just now, so they stand behind the whole backlog of their
// type, which a rate keeps from ending.
void measure_exhausted(Bench& bench) {
  constexpr const char* kFlooded = "flooded";
  constexpr int kExhausted = 16, kLongestS = 65;
  const Database database(bench.server);
  {
    Subject before(database.url(), {bench.binary});
    before.rest().send("PUT", std::string("/v1/types/") + kFlooded,
                       {{"handler", {{"kind", "noop"}}}, {"rate_per_s", 20}});
    before.create(jobs_due_over(before.db_now() + seconds(3), seconds(1), 20'000, 7, kFlooded));
    before.stop();
  }
  pause_for(milliseconds(5'000));  // all are overdue, and new to the next node: every lane becomes backlog
  Subject subject(database.url(), {bench.binary});
  const auto number = [&](const std::string& sql) {
    return pqxx::nontransaction(subject.sql()).exec1(sql)[0].as<double>();
  };
  const double shards = number("SELECT cardinality(owners) FROM tocsin.shard_map");
  for (int tries = 0; subject.counter("tocsin_backlog_lanes") < shards; ++tries) {
    if (tries > 400) throw Failure("the lanes do not become backlog");
    pause_for(milliseconds(50));
  }
  pqxx::nontransaction(subject.sql())
      .exec(
          "WITH e AS (UPDATE tocsin.job_live SET status = 1, attempts = max_attempts, claim_token = job_id, "
          "node = 'gone', started_at = now(), fire_at = now() WHERE job_id IN (SELECT job_id "
          "FROM tocsin.job_live WHERE status = 0 ORDER BY job_id DESC LIMIT " +
          std::to_string(kExhausted) +
          ") RETURNING type_id) INSERT INTO tocsin.job_count_delta SELECT type_id, s, n, NULL FROM (SELECT type_id, "
          "count(*) FROM e GROUP BY 1) c (type_id, k), LATERAL (VALUES (0, -k), (1, k)) v (s, n)");
  const WallTime from = subject.db_now();
  const auto passed_s = [&] { return std::chrono::duration<double>(subject.db_now() - from).count(); };
  while (number("SELECT count(*) FROM tocsin.job WHERE status = 'dead'") < kExhausted && passed_s() < kLongestS)
    pause_for(milliseconds(100));
  bench.results.add("isolation.exhausted_dead_s", passed_s());
}

}  // namespace

void measure_isolation(Bench& bench) {
  measure_gateway(bench);
  measure_drop_late(bench);
  for (const int types : {1, 300, 1'000}) measure_beside_noop(bench, types);
  for (const int endpoints : {0, 20, 200}) measure_beside_slow(bench, endpoints);
  for (const bool is_refusing : {false, true}) measure_refusing(bench, is_refusing);
  measure_exhausted(bench);
}

}  // namespace tocsin::bench
