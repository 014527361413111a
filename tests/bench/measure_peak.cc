// Single creates and cancels as another load generator sees them, and what a node costs that has nothing to do.
#include <iostream>

#include "api/time_text.h"
#include "bench/measurements.h"
#include "bench/memory_file.h"
#include "bench/processor_time.h"
#include "bench/workloads.h"
#include "bench/wrk.h"

namespace tocsin::bench {
namespace {

using std::chrono::seconds;

constexpr double kCancelsPerSecond = 25'000;  // more than are cancelled in that time, or the time gets shorter
constexpr auto kQuietAfter = seconds(5);      // what the creates left behind is done with by then

const std::string kHealth = R"lua(
function request() return wrk.format("GET", "/healthz") end
)lua";

const std::string kEmptyPost = R"lua(
function request() return wrk.format("POST", "/v1/jobs/batch", nil, '{"jobs":[]}') end
)lua";

// A key of its own for each, and the same attribute: the text around the key is made once.
std::string create_script(const BenchJob& example) {
  const std::string body = job_body(example), key = biz_id_of(example);
  const auto at = body.find('"' + key + '"') + 1;
  return "local head, tail = [==[" + body.substr(0, at) + "]==], [==[" + body.substr(at + key.size()) + R"lua(]==]
local n = 0
function request()
  n = n + 1
  return wrk.format("POST", "/v1/jobs", nil, head .. "wrk-" .. lane .. "-" .. n .. tail)
end
)lua";
}

// Each thread takes every so-manieth id.
std::string cancel_script(const std::string& ids) {
  return "local path, lanes = [==[" + ids + "]==], " + std::to_string(kWrkThreads) + R"lua(
local mine, n = {}, 0
function init()
  local i = 0
  for id in io.lines(path) do
    if i % lanes == lane - 1 then mine[#mine + 1] = id end
    i = i + 1
  end
end
function request()
  n = n + 1
  if mine[n] == nil then
    wrk.thread:stop()
    return wrk.format("GET", "/healthz")
  end
  return wrk.format("POST", "/v1/jobs/" .. mine[n] .. "/cancel", nil, "")
end
)lua";
}

std::int64_t jobs_in(Subject& subject, const std::string& status) {
  pqxx::nontransaction tx(subject.sql());
  return tx.exec1("SELECT sum(n)::bigint FROM tocsin.job_stats WHERE status = " + tx.quote(status))[0]
      .as<std::int64_t>();
}

// What wrk counts must be in the tables; those answered after it stopped counting are there besides.
void require_durable(std::int64_t answered, std::int64_t found, const char* what) {
  if (found < answered)
    throw Failure(std::to_string(answered) + " jobs were " + what + ", and " + std::to_string(found) + " are there");
}

void measure_idle(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  subject.create(jobs_due_at(subject.db_now() + kFar, bench.sizes.idle_jobs));
  subject.settle();
  subject.wait_until(subject.db_now() + kQuietAfter, "becoming idle");
  const pid_t server = server_of(subject.sql());
  const double node_before = subject.processor_seconds(), server_before = processor_seconds_of_all(server);
  subject.wait_until(subject.db_now() + seconds(bench.sizes.idle_s), "idling");
  const double per_minute = 60.0 / bench.sizes.idle_s;
  bench.results.add("peak.idle_node", per_minute * (subject.processor_seconds() - node_before));
  bench.results.add("peak.idle_database", per_minute * (processor_seconds_of_all(server) - server_before));
}

}  // namespace

void measure_peak(Bench& bench) {
  const double length = bench.sizes.request_s;
  Results& results = bench.results;
  {
    Subject subject(bench.server, {bench.binary});
    results.add("peak.healthz", run_wrk(subject.port(), length, kHealth).per_second());
    results.add("peak.empty_post", run_wrk(subject.port(), length, kEmptyPost).per_second());

    const WrkReport creates = run_wrk(subject.port(), length, create_script({0, subject.db_now() + kFar}));
    require_durable(creates.answered, jobs_in(subject, "pending"), "created");
    results.add("peak.create", creates.per_second());
    results.add("peak.create_p50", creates.p50_ms);
    results.add("peak.create_p99", creates.p99_ms);
    results.add("peak.refused", static_cast<double>(creates.unexpected));
  }
  {
    Subject subject(bench.server, {bench.binary});
    std::vector<std::string> ids;
    const auto n = static_cast<std::size_t>(kCancelsPerSecond * length);
    subject.create(jobs_due_at(subject.db_now() + kFar, n), Subject::kBatch, &ids);
    subject.settle();
    std::string lines;
    for (const std::string& id : ids) lines += id + '\n';
    const MemoryFile file(lines);
    const WrkReport cancels = run_wrk(subject.port(), length, cancel_script(file.path()));
    // At the end of the ids each connection may have asked once for something else.
    const std::int64_t cancelled = jobs_in(subject, "cancelled");
    require_durable(std::min(cancels.answered, static_cast<std::int64_t>(n) - kWrkThreads), cancelled, "cancelled");
    results.add("peak.cancel", cancels.per_second());
    results.add("peak.cancel_p50", cancels.p50_ms);
    results.add("peak.cancel_p99", cancels.p99_ms);
    results.add("peak.refused", static_cast<double>(cancels.unexpected));
  }
  measure_idle(bench);
}

}  // namespace tocsin::bench
