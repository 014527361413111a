// How fast jobs end that functions of the database, or consumers, take care of.
#include <deque>

#include "bench/measurements.h"
#include "bench/workloads.h"

namespace tocsin::bench {
namespace {

using std::chrono::seconds;

// Each job changes one row of the business, in the transaction that finishes it.
double sql_rate(Bench& bench, std::size_t n) {
  SubjectOptions options{.binary = bench.binary};
  options.further = {"--allow-superuser-handlers"};
  Subject subject(bench.server, options);
  {
    pqxx::work tx(subject.sql());
    tx.exec(
        "CREATE TABLE public.bench_order (id text PRIMARY KEY, state text NOT NULL DEFAULT 'open');"
        "CREATE FUNCTION public.bench_close(job tocsin.job) RETURNS jsonb LANGUAGE plpgsql AS $$"
        " DECLARE key text := job.biz_id;"
        " BEGIN UPDATE public.bench_order SET state = 'closed' WHERE id = key; RETURN NULL; END $$;"
        "GRANT SELECT, UPDATE ON public.bench_order TO tocsin_handler;"
        "GRANT EXECUTE ON FUNCTION public.bench_close TO tocsin_handler");
    pqxx::stream_to rows(tx, "bench_order", std::vector<std::string>{"id"});
    for (std::size_t i = 0; i < n; ++i) rows << std::make_tuple(biz_id_of({static_cast<std::int64_t>(i)}));
    rows.complete();
    tx.commit();
  }
  subject.put_type(kType, R"({"kind":"sql","function":"public.bench_close"})");
  const double rate = drain_rate(subject, n);
  pqxx::work tx(subject.sql());
  const auto open = tx.exec1("SELECT count(*) FROM public.bench_order WHERE state = 'open'")[0].as<std::int64_t>();
  if (open != 0) throw Failure(std::to_string(open) + " rows were not changed by their jobs");
  return rate;
}

// Consumers that lease a hundred at a time and acknowledge them.
double pull_rate(Bench& bench, std::size_t n) {
  Subject subject(bench.server, {bench.binary, R"({"kind":"pull"})"});
  const WallTime due = subject.db_now() + seconds(3);
  subject.create(jobs_due_at(due, n));
  subject.settle();
  subject.wait_until(std::max(due, subject.db_now()), "jobs that are due");
  const std::string lease = request_text("POST", std::string("/v1/types/") + kType + "/lease",
                                         R"({"max":100,"wait_ms":1000,"ttr_ms":30000})");
  std::deque<std::string> acks;
  std::size_t leased = 0;
  Load load;
  load.port = subject.port();
  load.connections = 8;
  load.next = [&](std::int64_t, std::string& request) {
    if (!acks.empty()) {
      request = std::move(acks.front());
      acks.pop_front();
      return true;
    }
    request = lease;
    return leased < n;
  };
  load.on_answer = [&](std::int64_t, const std::string& body) {
    const Json items = Json::parse(body).at("items");
    Json ack = {{"items", Json::array()}};
    for (const Json& item : items) {
      if (item.contains("lease_token"))
        ack["items"].push_back({{"job_id", item.at("job_id")}, {"lease_token", item.at("lease_token")}});
      else if (item.at("result") != "ok")
        throw Failure("an acknowledgement was refused: " + item.dump());
    }
    if (ack["items"].empty()) return;
    leased += ack["items"].size();
    acks.push_back(request_text("POST", "/v1/leases/ack", ack.dump()));
  };
  const LoadReport report = run_strict_load(load);
  subject.wait_until_finished(static_cast<std::int64_t>(n), "the last acknowledgements");
  return static_cast<double>(n) / report.seconds;
}

}  // namespace

void measure_handlers(Bench& bench) {
  bench.results.add("handlers.sql", sql_rate(bench, bench.sizes.handler_jobs));
  bench.results.add("handlers.pull", pull_rate(bench, bench.sizes.handler_jobs));
}

}  // namespace tocsin::bench
