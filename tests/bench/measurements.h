// The measurements of the bench, one function each. One call is one round, on databases of its own. Long measurements
// (is_long) run only on request, and only once: they repeat their rounds themselves, because what they prepare takes
// long.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/postgres_server.h"
#include "bench/program.h"

namespace tocsin::bench {

// How much work each measurement does; the option --quick makes it a tenth. Names end in the unit where it is not a
// number of jobs or rows.
struct Sizes {
  std::size_t lateness_jobs = 5'000;
  int lateness_s = 30;
  std::size_t cross_node_jobs = 2'000;
  std::size_t drain_jobs = 50'000;
  double request_s = 10;
  std::size_t batch_jobs = 100'000;
  std::size_t cancel_jobs = 20'000;
  std::size_t backlog_jobs = 1'000'000;
  std::size_t verb_jobs = 200'000;
  std::size_t slow_list_rows = 1'000'000;    // done jobs that a list of a rare type reads
  std::size_t key_history_jobs = 1'000'000;  // finished today, and on 30 days before
  std::size_t verb_history_jobs = 300'000;   // jobs finished just before the verbs are timed
  std::size_t webhook_jobs = 4'000;
  int webhook_s = 2;
  std::size_t burst_jobs = 10'000;
  std::size_t endpoint_jobs = 5'000;
  std::size_t endpoint_burst_jobs = 40'000;  // long beside the moment in which the dead endpoint is found out
  std::size_t handler_jobs = 30'000;
  std::size_t broker_jobs = 30'000;
  int endpoint_s = 5;
  int isolation_s = 20;
  std::size_t noop_rate = 30'000;  // jobs per second of all noop types, beside webhooks
  int gateway_ms = 10'000;         // time of slow endpoints to answer
  int gateway_rounds = 5;          // rounds of answers that count
  std::size_t life_jobs = 50'000;
  std::size_t counting_jobs = 50'000;
  int counting_pairs = 10;
  std::size_t floor_rows = 100'000;
  std::size_t floor_commits = 2'000;
  std::size_t storm_jobs = 200'000;
  std::size_t storm_other_jobs = 1'000;
  std::size_t idle_jobs = 100'000;
  int idle_s = 60;
  std::size_t types = 1'000;
  int many_shards = 1'024;
  int types_s = 20;
  int overload_s = 10;
  int mixed_s = 20;
  std::size_t pull_backlog = 200'000;  // of 20 types
  std::size_t registry_types = 10'000;
  std::size_t drift_jobs = 3'000;
  int drift_s = 15;
  int cluster_s = 15;
  std::vector<std::size_t> depths = {0, 1'000'000, 10'000'000};
  std::size_t history_jobs = 10'000'000;
  int history_days = 10;
  std::size_t report_jobs = 10'000'000;  // live jobs, and as many finished ones
  int report_types = 30;
  int reader_rounds = 4;  // each: undisturbed, then with five kinds of readers, 10 s each
  int snapshot_s = 600;
  int snapshot_before_s = 90;
  int snapshot_after_s = 150;
  int snapshot_window_s = 30;
  std::size_t snapshot_rate = 2'000;
};
Sizes quick_sizes();

// What a measurement needs.
struct Bench {
  PostgresServer& server;
  Program binary;
  std::vector<int> claimers;
  Sizes sizes;
  int rounds = 1;
  int round = 0;  // 0, 1, ...
  Results results = {};
};

void measure_lateness(Bench& bench);
void measure_cross_node(Bench& bench);
void measure_outbox(Bench& bench);
void measure_drain(Bench& bench);
void measure_single(Bench& bench);
void measure_cancel(Bench& bench);
void measure_batch(Bench& bench);
void measure_memory(Bench& bench);
void measure_webhook(Bench& bench);
void measure_endpoints(Bench& bench);
void measure_isolation(Bench& bench);
void measure_handlers(Bench& bench);
void measure_brokers(Bench& bench);
void measure_life(Bench& bench);
void measure_counting(Bench& bench);
void measure_floors(Bench& bench);
void measure_storm(Bench& bench);
void measure_peak(Bench& bench);
void measure_types(Bench& bench);
void measure_many_lanes(Bench& bench);
void measure_overload(Bench& bench);
void measure_pull_backlog(Bench& bench);
void measure_registry(Bench& bench);
void measure_drift(Bench& bench);
void measure_cluster(Bench& bench);
void measure_depth(Bench& bench);
void measure_snapshot(Bench& bench);
void measure_history(Bench& bench);
void measure_retention(Bench& bench);
void measure_reports(Bench& bench);
void measure_verbs(Bench& bench);
void measure_key_history(Bench& bench);
void measure_leases(Bench& bench);
void measure_mixed(Bench& bench);

struct Measurement {
  const char* name;
  void (*run)(Bench&);
  bool is_long = false;  // only on request, and once
};
const std::vector<Measurement>& measurements();

}  // namespace tocsin::bench
