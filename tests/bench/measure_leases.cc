// What consumers say of leased jobs, one lease per request over 32 connections, beside single-row commits of pgbench.
#include <iostream>
#include <span>
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

}  // namespace

void measure_leases(Bench& bench) {
  const double length_s = std::max(2.0, bench.sizes.request_s / 3);
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
      {"ack", script({acked.begin() + 2 * (half / 3), acked.end()}, "/v1/leases/ack", R"({"items":[@]})")},
      {"nack", script(nacked, "/v1/leases/nack", R"({"items":[@]})")},
      {"retry", script(retried, "/v1/jobs/@/retry", "")},
  };
  // Slow reads beside promises: callers who list what a rare type has done look through everything that is done.
  write_finished(subject.database(), bench.sizes.slow_list_rows, 1);
  subject.put_type("rare");
  const auto ack_some = [&](std::size_t from) {
    const std::span some_acked = std::span(acked).subspan(from, acked.size() / 3);
    const std::vector<std::string> some(some_acked.begin(), some_acked.end());
    return run_wrk(subject.port(), length_s, script(some, "/v1/leases/ack", R"({"items":[@]})"));
  };
  const double alone = ack_some(0).p99_ms;
  double beside = 0;
  WrkReport lists;
  {
    const std::jthread listing([&] {
      lists = run_wrk(subject.port(), length_s + 2,
                      "function request() return wrk.format('GET', '/v1/jobs?biz_type=rare&status=done') end\n", 40);
    });
    pause_for(std::chrono::seconds(1));
    beside = ack_some(acked.size() / 3).p99_ms;
  }
  bench.results.add("leases.alone_p99", alone);
  bench.results.add("leases.beside_p99", beside);
  bench.results.add("leases.beside_ratio", beside / alone);
  bench.results.add("leases.lists", lists.per_second());
  bench.results.add("leases.lists_refused", static_cast<double>(lists.unexpected));
  for (const auto& verb : verbs) {
    const double floor = verb_floor(subject.database(), length_s);
    std::cerr << "  " << verb.name << '\n';
    note_verb(bench.results, std::string("leases.") + verb.name, run_wrk(subject.port(), length_s, verb.script), floor);
  }
}

}  // namespace tocsin::bench
