#include "bench/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/isolation_figures.h"
#include "bench/report_figures.h"
#include "bench/verb_figures.h"

namespace tocsin::bench {
namespace {

using Rounds = Figure::Rounds;

Section drain_section(const std::vector<int>& claimers) {
  Section section{"drain", "Drain: all due at one instant", {}};
  for (const int n : claimers) {
    const std::string count = std::to_string(n), noun = n == 1 ? " claimer" : " claimers";
    section.figures.push_back(
        {"drain.claimers_" + count, "fired, " + count + noun, "jobs/s", "", "floor.fire_" + std::to_string(n)});
  }
  return section;
}

Section floor_section(const std::vector<int>& claimers) {
  Section section{"floors",
                  "Floors: PostgreSQL alone, from this program",
                  {{"floor.copy", "COPY into one table of that shape", "rows/s"},
                   {"floor.insert_500", "unnest insert of 500, 4 connections", "rows/s"},
                   {"floor.update_500", "update of 500 by id, 1 connection", "rows/s"},
                   {"floor.commit_32", "1-row inserts, 32 connections", "commits/s"},
                   {"floor.commit_1", "1-row inserts, 1 connection", "commits/s"},
                   {"floor.commit_ms", "one such commit", "ms"},
                   {"floor.create_500", "Tocsin's create of 500, 4 connections", "jobs/s"},
                   {"floor.create_10000", "Tocsin's create of 10,000, 4 connections", "jobs/s"},
                   {"floor.cancel_32", "Tocsin's cancel of 32, 2 connections", "jobs/s"},
                   {"floor.claimed", "Tocsin's claim and finish of 500, 2 conn.", "jobs/s"},
                   {"floor.fire_due", "Tocsin's backlog fire of 500, 2 conn.", "jobs/s"}}};
  for (const int n : claimers)
    section.figures.push_back(
        {"floor.fire_" + std::to_string(n), "Tocsin's fire of 500 by id, " + std::to_string(n) + " conn.", "jobs/s"});
  return section;
}

std::string thousands(std::size_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

Section depth_section(const std::vector<std::size_t>& depths) {
  Section section{"depth", "Depth: while so many others wait for a far deadline", {}};
  for (const std::size_t depth : depths) {
    const std::string prefix = "depth." + std::to_string(depth), waiting = thousands(depth) + " waiting: ";
    auto& figures = section.figures;
    figures.push_back({prefix + ".lateness_p99", waiting + "lateness p99", "ms"});
    figures.push_back({prefix + ".lateness_ratio", "  to the first", "x", "<= 1.2"});
    figures.push_back({prefix + ".create", "  single creates", "jobs/s"});
    figures.push_back({prefix + ".create_slower", "  slower than the first", "x", "<= 1.3"});
    figures.push_back({prefix + ".cancel", "  cancels", "jobs/s"});
    figures.push_back({prefix + ".cancel_slower", "  slower than the first", "x", "<= 1.3"});
  }
  return section;
}

Section life_section() {
  Section section{"life", "A whole life, per job: batches of 500", {}};
  const auto add = [&](const std::string& kind, const std::string& what, const std::string& aim) {
    const std::string prefix = "life." + kind;
    auto& figures = section.figures;
    figures.push_back({prefix + ".node", what + " by the node", "us", "", prefix + ".raw_sql"});
    figures.push_back({prefix + ".raw_sql", "  its statements as raw SQL", "us"});
    figures.push_back({prefix + ".ratio", "  node to raw SQL", "x", aim});
    figures.push_back({prefix + ".database", "  time in the node's statements, waits and all", "us"});
    figures.push_back({prefix + ".statements", "  statements per 1,000 jobs", ""});
    figures.push_back({prefix + ".transactions", "  transactions per 1,000 jobs", ""});
    figures.push_back({prefix + ".wal", "  WAL", "bytes"});
    for (const char* stage : {"scanner", "timekeeper", "claimer", "runner", "finisher"})
      figures.push_back({prefix + ".stage_" + stage, std::string("  in the steps of the ") + stage, "us"});
  };
  add("noop", "created and fired", "<= 1.25");
  section.figures.push_back({"life.noop.one_backend", "  raw SQL on one connection", "us", "<= 50"});
  add("claimed", "created, claimed, run and finished", "<= 1.35");
  return section;
}

Section endpoints_section() {
  Section section{"endpoints", "Webhooks beside a dead endpoint: 9 jobs in 10", {}};
  const auto add = [&](const std::string& name, const std::string& what) {
    const std::string prefix = "endpoints." + name;
    section.figures.push_back({prefix + "_p50", what + ": p50 at 1,000/s", "ms"});
    section.figures.push_back({prefix + "_p99", "  p99", "ms"});
    section.figures.push_back({prefix + "_burst", "  delivered, due at one instant", "jobs/s"});
  };
  add("alone", "alone");
  add("refusing", "beside one that refuses");
  add("silent", "beside one that is silent");
  return section;
}

}  // namespace

std::vector<Section> catalog(const Variants& variants) {
  const auto& claimers = variants.claimers;
  return {{"lateness",
           "Lateness: due at random ms over 30 s",
           {{"lateness.min", "least", "ms", ">= 0", "", Rounds::least},
            {"lateness.p50", "p50", "ms"},
            {"lateness.p90", "p90", "ms"},
            {"lateness.p99", "p99", "ms", "a few ms"},
            {"lateness.p99_9", "p99.9", "ms"},
            {"lateness.max", "most, of all rounds", "ms", "", "", Rounds::most},
            {"lateness.early", "fired early, of all rounds", "jobs", "0", "", Rounds::sum}}},
          {"cross_node",
           "Due in 200 ms, accepted by two nodes",
           {{"cross_node.own_p50", "by the owner of the shard: lateness p50", "ms"},
            {"cross_node.own_p99", "  p99", "ms"},
            {"cross_node.own_max", "  most, of all rounds", "ms", "", "", Rounds::most},
            {"cross_node.p50", "by the other node: lateness p50", "ms"},
            {"cross_node.p99", "  p99", "ms", "< 20"},
            {"cross_node.max", "  most, of all rounds", "ms", "", "", Rounds::most}}},
          {"outbox",
           "Due in 200 ms, created by SQL in one of two databases",
           {{"outbox.own_p50", "where the shard lives: lateness p50", "ms"},
            {"outbox.own_p99", "  p99", "ms"},
            {"outbox.own_max", "  most, of all rounds", "ms", "", "", Rounds::most},
            {"outbox.p50", "through the outbox: lateness p50", "ms"},
            {"outbox.p99", "  p99", "ms"},
            {"outbox.max", "  most, of all rounds", "ms", "", "", Rounds::most},
            {"outbox.relay_p50", "  from its creation until it was taken over: p50", "ms"},
            {"outbox.relay_p99", "    p99", "ms"},
            {"outbox.relay_max", "    most, of all rounds", "ms", "", "", Rounds::most}}},
          drain_section(claimers),
          {"single",
           "Requests over 32 connections",
           {{"single.create", "creates, each 201 and durable", "jobs/s", "", "floor.commit_32"},
            {"single.create_p50", "  p50 of the answer", "ms"},
            {"single.create_p99", "  p99 of the answer", "ms"},
            {"single.healthz", "GET /healthz: the client's ceiling", "req/s"}}},
          verbs_section(),
          past_section(),
          leases_section(),
          {"mixed",
           "All verbs at once at fixed rates, and 3,000 jobs/s fired",
           {{"mixed.quiet_p99", "lateness p99 of the fired jobs alone", "ms"},
            {"mixed.p99", "lateness p99 beside the verbs", "ms"},
            {"mixed.ratio", "  x alone", "x", "2"},
            {"mixed.create", "3,000 creates/s: answered", "req/s"},
            {"mixed.create_p99", "  p99", "ms", "30"},
            {"mixed.cancel_key", "2,000 cancels by key/s: answered", "req/s"},
            {"mixed.cancel_key_p99", "  p99", "ms", "30"},
            {"mixed.get", "1,000 gets/s, half of finished jobs: answered", "req/s"},
            {"mixed.get_p99", "  p99", "ms", "30"},
            {"mixed.list", "200 lists by key/s, half of finished jobs: answered", "req/s"},
            {"mixed.list_p99", "  p99", "ms", "30"}}},
          {"cancel",
           "Cancels by id over 32 connections",
           {{"cancel.rate", "cancels, each 200 and durable", "jobs/s", "", "floor.commit_32"},
            {"cancel.p99", "  p99 of the answer", "ms"},
            {"cancel.refused", "  not answered 200, of all rounds", "jobs", "0", "", Rounds::sum}}},
          {"batch",
           "Batch creates, 4 requests in flight",
           {{"batch.create_500", "batches of 500", "jobs/s", "", "floor.create_500"},
            {"batch.create_10000", "batches of 10,000", "jobs/s", "", "floor.create_10000"}}},
          {"memory",
           "Backlog: a million overdue, then resumed",
           {{"memory.start", "resident memory of the node, idle", "MB"},
            {"memory.peak", "  at its peak, most of all rounds", "MB", "<= 150", "", Rounds::most},
            {"memory.after", "  when all have fired", "MB"},
            {"memory.drain", "fired", "jobs/s", "", "floor.fire_due"}}},
          types_section(),
          many_lanes_section(),
          overload_section(),
          pull_backlog_section(),
          registry_section(),
          drift_section(),
          cluster_section(),
          {"webhook",
           "Webhooks to a receiver in this program",
           {{"webhook.ceiling", "the receiver alone, driven by wrk", "req/s"},
            {"webhook.rate", "delivered, due over 2 s", "jobs/s"},
            {"webhook.p50", "  p50 of the lateness there", "ms"},
            {"webhook.p99", "  p99 of the lateness there", "ms"},
            {"webhook.burst", "delivered, due at one instant", "jobs/s", ">= 4,000", "floor.claimed"}}},
          endpoints_section(),
          isolation_section(),
          {"handlers",
           "Jobs of other handlers, all due at one instant",
           {{"handlers.sql", "functions that change a row", "jobs/s", ">= 5,000", "floor.claimed"},
            {"handlers.pull", "leased and acknowledged by 100, 8 consumers", "jobs/s", ">= 5,000", "floor.claimed"}}},
          {"brokers",
           "Jobs that go out to brokers on this machine, all due at one instant",
           {{"brokers.redis", "Redis, each entry on disk", "jobs/s", "", "floor.claimed"},
            {"brokers.kafka", "Kafka, a mock cluster in this program", "jobs/s", "", "floor.claimed"},
            {"brokers.amqp", "RabbitMQ on one scheduler, durable queue", "jobs/s", "", "brokers.amqp_alone"},
            {"brokers.amqp_alone", "  RabbitMQ alone, from this program", "messages/s"}}},
          life_section(),
          counting_section(),
          {"storm",
           "Storm of one instant beside another type",
           {{"storm.rate", "fired in the storm", "jobs/s"},
            {"storm.spread_25", "shard ahead to shard behind, a quarter done", "x", "<= 2"},
            {"storm.spread_50", "  half done", "x", "<= 2"},
            {"storm.spread_75", "  three quarters done", "x", "<= 2"},
            {"storm.peak", "resident memory at its peak, most", "MB", "", "", Rounds::most},
            {"storm.quiet_p50", "the other type alone: p50", "ms"},
            {"storm.quiet_p99", "  p99", "ms"},
            {"storm.other_p50", "the other type in the storm: p50", "ms"},
            {"storm.other_p99", "  p99", "ms"},
            {"storm.p50_ratio", "  p50 to that alone", "x", "<= 2"},
            {"storm.p99_ratio", "  p99 to that alone", "x", "<= 2"}}},
          {"peak",
           "Driven by wrk: 32 connections, 2 threads",
           {{"peak.healthz", "GET /healthz: the ceiling", "req/s"},
            {"peak.empty_post", "POST of an empty batch: does nothing", "req/s"},
            {"peak.create", "single creates", "jobs/s", "", "peak.empty_post"},
            {"peak.create_p50", "  p50 of the answer", "ms"},
            {"peak.create_p99", "  p99 of the answer", "ms"},
            {"peak.cancel", "cancels by id", "jobs/s", "", "peak.empty_post"},
            {"peak.cancel_p50", "  p50 of the answer", "ms"},
            {"peak.cancel_p99", "  p99 of the answer", "ms"},
            {"peak.refused", "  answered otherwise, of all rounds", "jobs", "0", "", Rounds::sum},
            {"peak.idle_node", "idle, 100,000 pending: processor time of the node", "s/min"},
            {"peak.idle_database", "  of its PostgreSQL", "s/min"}}},
          depth_section(variants.depths),
          {"snapshot",
           "A snapshot held open at 2,000 jobs/s",
           {{"snapshot.baseline_p99", "lateness p99 before", "ms"},
            {"snapshot.end_p99", "  at the end of the snapshot", "ms"},
            {"snapshot.end_ratio", "  to that before", "x", "<= 3"},
            {"snapshot.scan_baseline_p99", "scan p99 before", "ms"},
            {"snapshot.scan_p99", "  while it was held", "ms", "< 20"},
            {"snapshot.scan_worst", "  in the worst half minute of it", "ms"},
            {"snapshot.recovered", "from the release to 1.2 x before", "s", "<= 120"}}},
          {"history",
           "History: beside millions of finished jobs",
           {{"history.lateness_p99", "lateness p99", "ms"},
            {"history.lateness_ratio", "  to the empty database", "x", "<= 1.2"},
            {"history.drain", "drain", "jobs/s"},
            {"history.drain_slower", "  slower than the empty one", "x", "<= 1.2"},
            {"history.create", "single creates", "jobs/s"},
            {"history.create_slower", "  slower than the empty one", "x", "<= 1.2"},
            {"history.cancel", "cancels", "jobs/s"},
            {"history.cancel_slower", "  slower than the empty one", "x", "<= 1.2"},
            {"history.readers_ratio", "lateness p99 while reports are read, to without", "x", "<= 1.2"},
            {"history.report_stats", "  GET /v1/stats, slowest", "ms", "< 100"},
            {"history.report_list", "  GET /v1/jobs?status=done, slowest", "ms", "< 100"},
            {"history.report_find", "  GET /v1/jobs?biz_id=, slowest", "ms", "< 100"},
            {"history.report_view", "  tocsin.job_stats, slowest", "ms", "< 100"},
            {"history.report_biz", "  tocsin.job of one biz_id, slowest", "ms", "< 100"}}},
          {"retention",
           "Retention: old days of a million jobs are dropped",
           {{"retention.dropped", "tables dropped", "tables", "", "", Rounds::sum},
            {"retention.p99", "  lateness p99 of the 50 s meanwhile", "ms"},
            {"retention.ratio", "  to the same without", "x", "<= 1.5"},
            {"retention.near_p99", "  lateness p99 within a second of a drop", "ms"},
            {"retention.worst", "  the most late of these", "ms"}}},
          reports_section(),
          floor_section(claimers)};
}

std::optional<double> Results::of(const Figure& figure) const {
  const auto found = values_.find(figure.name);
  if (found == values_.end()) return std::nullopt;
  const std::vector<double>& values = found->second;
  switch (figure.rounds) {
    case Rounds::least:
      return *std::min_element(values.begin(), values.end());
    case Rounds::most:
      return *std::max_element(values.begin(), values.end());
    case Rounds::sum:
      return std::accumulate(values.begin(), values.end(), 0.0);
    case Rounds::median:
      break;
  }
  return median(values);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted.empty() ? 0
                        : sorted[static_cast<std::size_t>(std::llround(q * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace tocsin::bench
