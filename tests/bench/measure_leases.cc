// What consumers say of leased jobs, one lease per request over 32 connections, beside slow lists, and beside
// single-row commits of pgbench.
#include <iostream>
#include <thread>

#include "bench/measurements.h"
#include "bench/preload.h"
#include "bench/verb_floor.h"
#include "bench/workloads.h"
#include "bench/wrk.h"
#include "cli/pause.h"

namespace tocsin::bench {
namespace {

constexpr const char* kPullType = R"({"kind":"pull"})";

struct Leased {
  std::vector<std::string> items;  // {"job_id":...,"lease_token":...}
  std::vector<std::string> ids;
};

// Leases jobs that are due until so many are leased, for an hour.
Leased lease(Subject& subject, std::size_t n) {
  Leased leased;
  while (leased.ids.size() < n) {
    const Json got = subject.rest().send("POST", std::string("/v1/types/") + kType + "/lease",
                                         {{"max", 1000}, {"wait_ms", 5000}, {"ttr_ms", 3'600'000}});
    if (got.at("items").empty()) throw Failure("no jobs are left to lease");
    for (const Json& job : got.at("items")) {
      const auto id = job.at("job_id").get<std::string>();
      leased.ids.push_back(id);
      leased.items.push_back(R"({"job_id":")" + id + R"(","lease_token":")" + job.at("lease_token").get<std::string>() +
                             "\"}");
    }
  }
  return leased;
}

// Each of `items` in turn stands in for the @ of `body` or `path`.
std::string script(const std::vector<std::string>& items, const std::string& path, const std::string& body) {
  std::string lua = "local items = {";
  for (const std::string& item : items) lua += "[[" + item + "]],";
  return lua + "}\nlocal at = 0\nfunction request()\n local i = items[(at + lane) % #items + 1]\n at = at + 2\n" +
         " return wrk.format('POST', (string.gsub('" + path + "', '@', i)), nil, (string.gsub([[" + body +
         "]], '@', i))) end\n";
}

// Consumers: each thread of wrk leases some jobs for two seconds, acknowledges each with a request of its own, and
// leases more when few are left: one request of 300. Jobs that it gets none of, and acks that are not ok, count as
// stale.
const std::string kConsumers = std::string(R"lua(
local leases, first, is_leasing = {}, 1, false
local function lease(n)
  return wrk.format('POST', '/v1/types/)lua") +
                               kType + R"lua(/lease', nil, '{"wait_ms":0,"ttr_ms":2000,"max":' .. n .. '}')
end
function request()
  if #leases - first < 300 and not is_leasing then
    is_leasing = true
    return lease(300)
  end
  if first > #leases then return lease(10) end
  local body = '{"items":[' .. leases[first] .. ']}'
  leases[first] = false
  first = first + 1
  return wrk.format('POST', '/v1/leases/ack', nil, body)
end
function response(status, headers, body)
  if body:find('"result"', 1, true) then
    if not body:find('"result":"ok"', 1, true) then stale = stale + 1 end
    return
  end
  is_leasing = false
  local ids, n = body:gmatch('"job_id":"(%d+)"'), 0
  for token in body:gmatch('"lease_token":"([^"]+)"') do
    leases[#leases + 1] = '{"job_id":"' .. ids() .. '","lease_token":"' .. token .. '"}'
    n = n + 1
  end
  if n == 0 then stale = stale + 1 end
end
)lua";

// Slow reads beside promises: callers who list what a rare type has done look through everything that is done.
void measure_beside_lists(Bench& bench, double length_s) {
  Subject subject(bench.server, {.binary = bench.binary, .handler = kPullType});
  write_finished(subject.database(), bench.sizes.slow_list_rows, 1);
  write_pending(subject.database(), bench.sizes.verb_jobs, "now()", Indexes::kept);
  subject.put_type("rare");
  subject.settle();
  const WrkReport alone = run_wrk(subject.port(), length_s, kConsumers);
  WrkReport beside, lists;
  {
    const std::jthread listing([&] {
      lists = run_wrk(subject.port(), length_s + 2,
                      "function request() return wrk.format('GET', '/v1/jobs?biz_type=rare&status=done') end\n", 40);
    });
    pause_for(std::chrono::seconds(1));
    beside = run_wrk(subject.port(), length_s, kConsumers);
  }
  bench.results.add("leases.alone_p99", alone.p99_ms);
  bench.results.add("leases.beside_p99", beside.p99_ms);
  bench.results.add("leases.beside_ratio", beside.p99_ms / alone.p99_ms);
  bench.results.add("leases.beside_acks", beside.per_second());
  bench.results.add("leases.beside_stale", static_cast<double>(alone.stale + beside.stale));
  bench.results.add("leases.lists", lists.per_second());
  bench.results.add("leases.lists_refused", static_cast<double>(lists.unexpected));
}

void measure_reports_of_leases(Bench& bench, double length_s) {
  // The last attempt: what is not acknowledged is dead, and retried.
  Subject subject(bench.server, {.binary = bench.binary, .handler = kPullType});
  subject.rest().send("PUT", std::string("/v1/types/") + kType, {{"handler", {{"kind", "pull"}}}, {"max_attempts", 1}});
  write_pending(subject.database(), bench.sizes.verb_jobs, "now()", Indexes::kept);
  subject.settle();
  Leased all = lease(subject, bench.sizes.verb_jobs);
  const auto half = static_cast<std::ptrdiff_t>(all.items.size() / 2);
  const std::vector<std::string> acked(all.items.begin(), all.items.begin() + half);
  const std::vector<std::string> nacked(all.items.begin() + half, all.items.end());
  const std::vector<std::string> retried(all.ids.begin() + half, all.ids.end());
  const struct {
    const char* name;
    std::string script;
  } verbs[] = {
      {"extend", script(all.items, "/v1/leases/extend", R"({"items":[@],"ttr_ms":3600000})")},
      {"ack", script(acked, "/v1/leases/ack", R"({"items":[@]})")},
      {"nack", script(nacked, "/v1/leases/nack", R"({"items":[@]})")},
      {"retry", script(retried, "/v1/jobs/@/retry", "")},
  };
  for (const auto& verb : verbs) {
    const double floor = verb_floor(subject.database(), length_s);
    std::cerr << "  " << verb.name << '\n';
    note_verb(bench.results, std::string("leases.") + verb.name, run_wrk(subject.port(), length_s, verb.script), floor);
  }
}

}  // namespace

void measure_leases(Bench& bench) {
  const double length_s = std::max(2.0, bench.sizes.request_s / 3);
  measure_beside_lists(bench, length_s);
  measure_reports_of_leases(bench, length_s);
}

}  // namespace tocsin::bench
