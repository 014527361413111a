#include "bench/measurements.h"

namespace tocsin::bench {

Sizes quick_sizes() {
  Sizes sizes;
  for (std::size_t* n :
       {&sizes.lateness_jobs, &sizes.cross_node_jobs,  &sizes.drain_jobs,        &sizes.batch_jobs,
        &sizes.cancel_jobs,   &sizes.backlog_jobs,     &sizes.burst_jobs,        &sizes.endpoint_burst_jobs,
        &sizes.life_jobs,     &sizes.handler_jobs,     &sizes.broker_jobs,       &sizes.floor_rows,
        &sizes.floor_commits, &sizes.storm_jobs,       &sizes.storm_other_jobs,  &sizes.idle_jobs,
        &sizes.verb_jobs,     &sizes.key_history_jobs, &sizes.verb_history_jobs, &sizes.counting_jobs})
    *n /= 10;
  sizes.counting_pairs /= 5;
  sizes.webhook_jobs /= 2;
  sizes.endpoint_jobs /= 5;
  sizes.endpoint_s /= 5;
  sizes.lateness_s /= 6;
  sizes.webhook_s /= 2;
  sizes.request_s /= 10;
  sizes.idle_s /= 10;
  sizes.types_s /= 2;
  sizes.noop_rate /= 3;
  sizes.gateway_ms /= 5;
  sizes.overload_s /= 2;
  sizes.mixed_s /= 4;
  sizes.pull_backlog /= 10;
  sizes.registry_types /= 10;
  sizes.drift_jobs /= 3;
  for (int* s : {&sizes.drift_s, &sizes.cluster_s}) *s /= 3;
  for (std::size_t& depth : sizes.depths) depth /= 100;
  sizes.history_jobs /= 100;
  sizes.report_jobs /= 100;
  sizes.reader_rounds /= 4;
  sizes.snapshot_s /= 20;
  for (int* s : {&sizes.snapshot_before_s, &sizes.snapshot_after_s}) *s /= 5;
  sizes.snapshot_window_s /= 6;
  return sizes;
}

const std::vector<Measurement>& measurements() {
  static const std::vector<Measurement> all = {
      {"floors", measure_floors},
      {"lateness", measure_lateness},
      {"cross_node", measure_cross_node, true},
      {"outbox", measure_outbox, true},
      {"drain", measure_drain},
      {"single", measure_single},
      {"cancel", measure_cancel},
      {"batch", measure_batch},
      {"memory", measure_memory},
      {"webhook", measure_webhook},
      {"endpoints", measure_endpoints},
      {"handlers", measure_handlers},
      {"brokers", measure_brokers, true},
      {"life", measure_life},
      {"storm", measure_storm},
      {"peak", measure_peak},
      {"depth", measure_depth, true},
      {"snapshot", measure_snapshot, true},
      {"history", measure_history, true},
      {"retention", measure_retention, true},
      {"reports", measure_reports, true},
      {"verbs", measure_verbs},
      {"key_history", measure_key_history, true},
      {"leases", measure_leases},
      {"mixed", measure_mixed},
      {"isolation", measure_isolation, true},
      {"types", measure_types},
      {"many_lanes", measure_many_lanes, true},
      {"overload", measure_overload, true},
      {"pull_backlog", measure_pull_backlog, true},
      {"registry", measure_registry, true},
      {"drift", measure_drift, true},
      {"cluster", measure_cluster, true},
      {"counting", measure_counting, true},
  };
  return all;
}

}  // namespace tocsin::bench
