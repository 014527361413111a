// What a backlog of a million jobs does to a node: it must hold its memory, and work it off.
#include <algorithm>

#include "bench/measurements.h"
#include "bench/preload.h"
#include "bench/subject.h"

namespace tocsin::bench {

void measure_memory(Bench& bench) {
  const auto n = static_cast<std::int64_t>(bench.sizes.backlog_jobs);
  const std::string type = std::string("/v1/types/") + kType;
  Subject subject(bench.server, {bench.binary});
  subject.rest().send("POST", type + "/pause", Json::object());
  bench.results.add("memory.start", subject.resident_mb());
  write_pending(subject.database(), bench.sizes.backlog_jobs, "statement_timestamp() - i * interval '10 microseconds'",
                Indexes::kept);
  subject.settle();

  const WallTime resumed = subject.db_now();
  subject.rest().send("POST", type + "/resume", Json::object());
  subject.wait_until_finished(n, "working off the backlog");
  bench.results.add("memory.peak", subject.peak_mb());
  bench.results.add("memory.after", subject.resident_mb());
  const std::chrono::duration<double> took = subject.last_finished_at() - resumed;
  bench.results.add("memory.drain", static_cast<double>(n) / took.count());
}

}  // namespace tocsin::bench
