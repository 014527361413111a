// What a business does at once: creates, cancels by key, gets and lists at fixed rates while jobs fire.
#include <algorithm>
#include <iostream>
#include <thread>

#include "bench/measurements.h"
#include "bench/preload.h"
#include "bench/workloads.h"
#include "bench/wrk.h"

namespace tocsin::bench {
namespace {

constexpr int kFiresPerSecond = 3'000;
constexpr const char* kFired = "fired";

struct Verb {
  const char* name;
  int per_second;
  std::string prepare;  // Lua
  std::string request;  // Lua: the request number `n` of the thread `lane`
};

// wrk asks for a delay before each request, and both threads share the rate: each has a schedule of its own. What
// answers hold up is made up for within 50 ms.
std::string script(const Verb& verb) {
  return verb.prepare + R"(
local ffi = require('ffi')
ffi.cdef[[ typedef struct { long s, ns; } moment; int clock_gettime(int, moment*); ]]
local moment, next_at, n = ffi.new('moment'), nil, 0
function delay()
  ffi.C.clock_gettime(1, moment)
  local now = tonumber(moment.s) * 1000 + tonumber(moment.ns) / 1000000
  next_at = math.max((next_at or now) + )" +
         std::to_string(2000.0 / verb.per_second) + R"(, now - 50)
  return math.max(0, math.floor(next_at - now + 0.5))
end
function request() n = n + 1 return )" +
         verb.request + " end\n";
}

std::string table_of(const std::string& name, const std::vector<std::string>& items) {
  std::string lua = "local " + name + " = {";
  for (const std::string& item : items) lua += '"' + item + "\",";
  return lua + "}\n";
}

struct MixedJobs {
  std::vector<std::string> ids, keys;
};

// Of every second number, the next of either list.
MixedJobs in_turns(const MixedJobs& a, const MixedJobs& b) {
  MixedJobs all;
  for (std::size_t i = 0; i < std::min(a.ids.size(), b.ids.size()); ++i) {
    all.ids.insert(all.ids.end(), {a.ids[i], b.ids[i]});
    all.keys.insert(all.keys.end(), {a.keys[i], b.keys[i]});
  }
  return all;
}

// `pending`: to be cancelled by their keys. `finished`: reads are of both in turns.
std::vector<Verb> verbs(const MixedJobs& pending, const MixedJobs& finished) {
  const MixedJobs read = in_turns(pending, finished);
  const auto item = [](const std::string& of) { return of + "[(n * 2 + lane) % #" + of + " + 1]"; };
  const std::string type = kType;
  return {{"create", 3'000, "",
           "wrk.format('POST', '/v1/jobs', nil, '{\"biz_type\":\"" + type +
               "\",\"biz_id\":\"new-' .. lane .. '-' .. n .. '\",\"delay_ms\":86400000,\"idempotency_key\":\"k\"}')"},
          {"cancel_key", 2'000, table_of("keys", pending.keys),
           "wrk.format('POST', '/v1/jobs/cancel', nil, '{\"biz_id\":\"' .. " + item("keys") + " .. '\"}')"},
          {"get", 1'000, table_of("ids", read.ids), "wrk.format('GET', '/v1/jobs/' .. " + item("ids") + ")"},
          {"list", 200, table_of("keys", read.keys), "wrk.format('GET', '/v1/jobs?biz_id=' .. " + item("keys") + ")"}};
}

struct Firing {
  std::vector<double> lateness_ms;  // sorted
  MixedJobs jobs;
};

Firing fire(Subject& subject, int length_s, std::uint64_t seed, const std::function<void()>& beside) {
  const WallTime start = subject.db_now() + std::chrono::seconds(4 + length_s * kFiresPerSecond / 25'000);
  const auto n = static_cast<std::size_t>(length_s) * kFiresPerSecond;
  const std::vector<BenchJob> jobs = jobs_due_over(start, std::chrono::seconds(length_s), n, seed, kFired);
  Firing fired;
  subject.create(jobs, Subject::kBatch, &fired.jobs.ids);
  for (const BenchJob& job : jobs) fired.jobs.keys.push_back(biz_id_of(job));
  subject.wait_until(start, "waiting for the first");
  beside();
  subject.wait_until(start + std::chrono::seconds(length_s + 1), "firing");
  fired.lateness_ms = subject.lateness_ms(start, kFired);
  if (fired.lateness_ms.size() != n)
    throw Failure(std::to_string(fired.lateness_ms.size()) + " of " + std::to_string(n) + " fired");
  return fired;
}

}  // namespace

void measure_mixed(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  subject.put_type(kFired);
  // Jobs to cancel by key, as old as the run.
  const int length_s = bench.sizes.mixed_s;
  std::vector<BenchJob> pending = jobs_due_at(subject.db_now() + kFar, static_cast<std::size_t>(length_s) * 2'200);
  for (BenchJob& job : pending) job.number += 10'000'000;  // no key of the jobs that fire
  MixedJobs waiting;
  subject.create(pending, Subject::kBatch, &waiting.ids);
  for (const BenchJob& job : pending) waiting.keys.push_back(biz_id_of(job));
  subject.settle();

  Results& results = bench.results;
  const Firing alone = fire(subject, length_s, 1, [] {});
  const double quiet = quantile(alone.lateness_ms, 0.99);
  const std::vector<Verb> all = verbs(waiting, alone.jobs);
  std::vector<WrkReport> reports(all.size());
  std::vector<std::jthread> threads;
  const Firing busy = fire(subject, length_s, 2, [&] {
    for (std::size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([&, i] { reports[i] = run_wrk(subject.port(), length_s, script(all[i])); });
  });
  threads.clear();
  const double beside = quantile(busy.lateness_ms, 0.99);
  results.add("mixed.quiet_p99", quiet);
  results.add("mixed.p99", beside);
  results.add("mixed.ratio", beside / quiet);
  for (std::size_t i = 0; i < all.size(); ++i) {
    results.add(std::string("mixed.") + all[i].name, reports[i].per_second());
    results.add(std::string("mixed.") + all[i].name + "_p99", reports[i].p99_ms);
  }
}

}  // namespace tocsin::bench
