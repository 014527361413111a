#include "bench/wrk.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "bench/memory_file.h"
#include "bench_core/process.h"
#include "cli/rest_client.h"

namespace tocsin::bench {
namespace {

const std::string kFrame = R"lua(
stale = 0
local threads = {}
function setup(thread)
  threads[#threads + 1] = thread
  thread:set("lane", #threads)
end
wrk.headers["Content-Type"] = "application/json"
function done(summary, latency)
  local e, stale = summary.errors, 0
  for _, thread in ipairs(threads) do stale = stale + thread:get("stale") end
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"status":%d,"broken":%d,"stale":%d,"p50_ms":%.4f,"p99_ms":%.4f}\n',
    summary.requests, summary.duration / 1e6, e.status, e.connect + e.read + e.write + e.timeout, stale,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
)lua";

}  // namespace

WrkReport run_wrk(int port, double seconds, const std::string& script, int connections) {
  const MemoryFile file(kFrame + script);
  const std::string length = std::to_string(std::max(1L, std::lround(seconds)));
  std::cerr << "  wrk for " << length << " s\n";
  std::string output;
  try {
    output = output_of({"wrk", "-t", std::to_string(kWrkThreads), "-c", std::to_string(connections), "-d", length + "s",
                        "--timeout", "20s", "-s", file.path(), "http://127.0.0.1:" + std::to_string(port) + "/"});
  } catch (const Failure&) {
    throw Failure("wrk failed; is it installed? scripts/install --gate does it");
  }
  const Json summary = Json::parse(output.substr(output.rfind('\n') + 1));
  if (summary.at("broken").get<int>() > 0) throw Failure("wrk lost connections");
  WrkReport report;
  report.unexpected = summary.at("status").get<std::int64_t>();
  report.answered = summary.at("requests").get<std::int64_t>() - report.unexpected;
  report.stale = summary.at("stale").get<std::int64_t>();
  report.seconds = summary.at("seconds").get<double>();
  report.p50_ms = summary.at("p50_ms").get<double>();
  report.p99_ms = summary.at("p99_ms").get<double>();
  return report;
}

}  // namespace tocsin::bench
