// What a backlog of a million jobs does to a node: it must hold its memory, and work it off.
#include <algorithm>

#include "bench/measurements.h"
#include "bench/subject.h"
#include "cli/progress.h"

namespace tocsin::bench {
namespace {

constexpr std::size_t kSlice = 50'000;

// Overdue jobs, written straight into the tables, as an outage would leave them.
void insert_backlog(Subject& subject, std::size_t n) {
  Progress progress("writing the backlog");
  for (std::size_t done = 0; done < n; done += kSlice) {
    progress.show(static_cast<std::int64_t>(done), static_cast<std::int64_t>(n));
    const std::size_t last = std::min(done + kSlice, n);
    pqxx::work tx(subject.sql());
    tx.exec(
        "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
        "max_attempts,"
        " biz_id, attribute) SELECT nextval('tocsin.job_seq') * 1024 + k.shard, k.due, k.due, k.due, k.due, t.type_id, "
        "k.shard,"
        " t.max_attempts, k.biz_id, jsonb_build_object('i', k.i, 'pad', repeat('x', 160)) FROM (SELECT i, 'backlog-' "
        "|| i AS biz_id,"
        " tocsin.shard_of('backlog-' || i, tocsin.shard_count()) AS shard, statement_timestamp() - i * interval '10 "
        "microseconds'"
        " AS due FROM generate_series(" +
        std::to_string(done + 1) + ", " + std::to_string(last) + ") i) k, tocsin.biz_type t");
    tx.exec("INSERT INTO tocsin.job_count_delta SELECT type_id, 0, " + std::to_string(last - done) +
            " FROM tocsin.biz_type");
    tx.commit();
  }
}

}  // namespace

void measure_memory(Bench& bench) {
  const auto n = static_cast<std::int64_t>(bench.sizes.backlog_jobs);
  const std::string type = std::string("/v1/types/") + kType;
  Subject subject(bench.server, {bench.binary});
  subject.rest().send("POST", type + "/pause", Json::object());
  bench.results.add("memory.start", subject.process().resident_mb());
  insert_backlog(subject, bench.sizes.backlog_jobs);
  subject.settle();

  const WallTime resumed = subject.db_now();
  subject.rest().send("POST", type + "/resume", Json::object());
  subject.wait_until_finished(n, "working off the backlog");
  bench.results.add("memory.peak", subject.process().peak_mb());
  bench.results.add("memory.after", subject.process().resident_mb());
  const std::chrono::duration<double> took = subject.last_finished_at() - resumed;
  bench.results.add("memory.drain", static_cast<double>(n) / took.count());
}

}  // namespace tocsin::bench
