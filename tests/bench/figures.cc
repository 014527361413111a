#include "bench/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "bench/report_reads.h"

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
  const auto add = [&](const std::string& kind, const std::string& what) {
    const std::string prefix = "life." + kind;
    auto& figures = section.figures;
    figures.push_back({prefix + ".node", what + " by the node", "us", "<= 2 x floor", prefix + ".hand"});
    figures.push_back({prefix + ".hand", "  its statements by hand", "us"});
    figures.push_back({prefix + ".ratio", "  node to hand", "x", "<= 2"});
    figures.push_back({prefix + ".database", "  time in the node's statements, waits and all", "us"});
    figures.push_back({prefix + ".statements", "  statements per 1,000 jobs", ""});
    figures.push_back({prefix + ".transactions", "  transactions per 1,000 jobs", ""});
    figures.push_back({prefix + ".wal", "  WAL", "bytes"});
    for (const char* stage : {"scanner", "timekeeper", "claimer", "runner", "finisher"})
      figures.push_back({prefix + ".stage_" + stage, std::string("  in the steps of the ") + stage, "us"});
  };
  add("noop", "created and fired");
  section.figures.push_back({"life.noop.one_backend", "  by hand on one connection", "us", "<= 50"});
  add("claimed", "created, claimed, run and finished");
  return section;
}

Section reports_section() {
  Section section{"reports", "Reports beside millions of jobs, 30 types and a year of slots", {}};
  const auto add = [&](const std::vector<ReportRead>& reads, const std::string& target) {
    for (const ReportRead& read : reads) {
      section.figures.push_back({"reports." + read.name + ".p50", read.name + ": p50", "ms"});
      section.figures.push_back({"reports." + read.name + ".max", "  slowest", "ms", target});
    }
  };
  add(usual_reads(), "< 200");
  add(reads_of_a_year(), "< 200");
  add(reads_without_kept_days(), "");
  section.figures.push_back({"reports.kept_in", "days of time zones of one UTC day, added up", "s"});
  for (const auto& [name, title, unit, target] :
       std::vector<std::array<const char*, 4>>{{"quiet_p99", "lateness p99 quiet", "ms", ""},
                                               {"views_p99", "  while all views are read in a loop", "ms", ""},
                                               {"views_ratio", "  to quiet, round by round", "x", "<= 1.1"},
                                               {"views_reads", "  reads of a view", "/s", ""},
                                               {"paced_p99", "  while a view is read every second", "ms", ""},
                                               {"paced_ratio", "  to quiet, round by round", "x", "<= 1.1"},
                                               {"burner_p99", "  while a session computes without a pause", "ms", ""},
                                               {"burner_ratio", "  to quiet, round by round", "x", ""},
                                               {"pages_p99", "  while 50 pages refresh", "ms", ""},
                                               {"pages_ratio", "  to quiet, round by round", "x", "<= 1.1"},
                                               {"pages_requests", "  requests of pages", "/s", ""}})
    section.figures.push_back({std::string("readers.") + name, title, unit, target});
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

Section isolation_section() {
  Section section{"isolation", "One slow business beside others", {}};
  const auto add = [&](const std::string& name, const std::string& what, const std::string& unit) {
    section.figures.push_back({"isolation." + name, what, unit});
  };
  add("gateway_done", "Six types on one gateway that answers after 2 s: done", "jobs/s");
  add("gateway_given_back", "  given back", "% of starts");
  add("gateway_wal", "  WAL", "kB/job");
  add("gateway_spread", "  most done of a type to least", "x");
  add("perishable_late", "  latest first attempt where 5 s is the limit", "s");
  for (const char* n : {"1", "300", "1000"}) {
    add("beside_" + std::string(n) + "_p50", "Webhook beside " + std::string(n) + " noop types: p50", "ms");
    add("beside_" + std::string(n) + "_p99", "  p99", "ms");
  }
  for (const char* n : {"0", "20", "200"}) {
    add("slow_" + std::string(n) + "_p50", "Webhook at 10/s beside " + std::string(n) + " slow endpoints: p50", "ms");
    add("slow_" + std::string(n) + "_p99", "  p99", "ms");
  }
  add("refusing_scans", "250 types, 50 refusing endpoints: scans", "/s");
  return section;
}

Section cluster_section() {
  Section section{"cluster", "Nodes on one database: a gateway, 20 slow endpoints, 100 noop types, a healthy type", {}};
  const auto add = [&](const std::string& name, const std::string& what) {
    const std::string prefix = "cluster." + name;
    auto& figures = section.figures;
    figures.push_back({prefix + "_p50", what + ": the healthy type's p50", "ms"});
    figures.push_back({prefix + "_p99", "  p99", "ms"});
    figures.push_back({prefix + "_latest", "  most", "ms"});
    figures.push_back({prefix + "_first_p99", "  p99 of what the first node ran, which never stops", "ms"});
    figures.push_back({prefix + "_given_back", "  given back", "% of starts", "<= 5"});
    figures.push_back({prefix + "_gateway", "  done by the gateway", "jobs/s"});
    figures.push_back({prefix + "_spread", "  healthy jobs, node with most to least", "x"});
  };
  add("1", "one node");
  add("2", "two");
  add("4", "four");
  add("stopped", "two, one stands still for 3 s");
  add("deaf", "two, notifications lost");
  add("promoted", "two, after their standby took over");
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
          {"foreign",
           "Due in 200 ms, accepted by two nodes",
           {{"foreign.own_p50", "by the owner of the shard: lateness p50", "ms"},
            {"foreign.own_p99", "  p99", "ms"},
            {"foreign.own_max", "  most, of all rounds", "ms", "", "", Rounds::most},
            {"foreign.p50", "by the other node: lateness p50", "ms"},
            {"foreign.p99", "  p99", "ms", "< 20"},
            {"foreign.max", "  most, of all rounds", "ms", "", "", Rounds::most}}},
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
          {"verbs",
           "Every verb over 32 connections",
           {{"verbs.floor", "single-row commits of pgbench, 32 clients", "rows/s"},
            {"verbs.create", "POST /v1/jobs", "req/s", "", "verbs.floor"},
            {"verbs.create_x", "  x the floor beside it", "x", "1.5"},
            {"verbs.create_p50", "  p50", "ms"},
            {"verbs.create_p99", "  p99", "ms", "20"},
            {"verbs.keyed", "the same with an idempotency key", "req/s", "", "verbs.floor"},
            {"verbs.keyed_x", "  x the floor beside it", "x", "1.2"},
            {"verbs.keyed_p50", "  p50", "ms"},
            {"verbs.keyed_p99", "  p99", "ms", "20"},
            {"verbs.get", "GET /v1/jobs/{id}", "req/s", "", "verbs.floor"},
            {"verbs.get_x", "  x the floor beside it", "x", "3"},
            {"verbs.get_p50", "  p50", "ms"},
            {"verbs.get_p99", "  p99", "ms", "20"},
            {"verbs.list", "GET /v1/jobs?biz_id=", "req/s", "", "verbs.floor"},
            {"verbs.list_x", "  x the floor beside it", "x", "1.5"},
            {"verbs.list_p50", "  p50", "ms"},
            {"verbs.list_p99", "  p99", "ms", "20"},
            {"verbs.reschedule", "POST .../reschedule", "req/s", "", "verbs.floor"},
            {"verbs.reschedule_x", "  x the floor beside it", "x", "1.0"},
            {"verbs.reschedule_p50", "  p50", "ms"},
            {"verbs.reschedule_p99", "  p99", "ms", "20"},
            {"verbs.cancel", "POST .../cancel", "req/s", "", "verbs.floor"},
            {"verbs.cancel_x", "  x the floor beside it", "x", "1.3"},
            {"verbs.cancel_p50", "  p50", "ms"},
            {"verbs.cancel_p99", "  p99", "ms", "20"},
            {"verbs.cancel_key", "POST /v1/jobs/cancel {biz_id}", "req/s", "", "verbs.floor"},
            {"verbs.cancel_key_x", "  x the floor beside it", "x", "1.0"},
            {"verbs.cancel_key_p50", "  p50", "ms"},
            {"verbs.cancel_key_p99", "  p99", "ms", "20"},
            {"verbs.run", "POST .../run", "req/s", "", "verbs.floor"},
            {"verbs.run_x", "  x the floor beside it", "x", "0.8"},
            {"verbs.run_p50", "  p50", "ms"},
            {"verbs.run_p99", "  p99", "ms", "20"},
            {"verbs.sql_create", "SELECT tocsin.create_job(...), 32 sessions", "calls/s", "", "verbs.floor"},
            {"verbs.sql_create_x", "  x the floor beside it", "x", "0.7"},
            {"verbs.sql_cancel_key", "SELECT tocsin.cancel_jobs(key), 32 sessions", "calls/s", "", "verbs.floor"},
            {"verbs.sql_cancel_key_x", "  x the floor beside it", "x", "0.7"},
            {"verbs.floor_function", "the floor's insert in a function like create_job", "calls/s", "", "verbs.floor"},
            {"verbs.floor_function_x", "  x the floor beside it", "x"},
            {"verbs.floor_cancel", "a row from one bare table to another in a function", "calls/s", "", "verbs.floor"},
            {"verbs.floor_cancel_x", "  x the floor beside it", "x"}}},
          {"past",
           "A lone caller beside jobs that finished today, p50",
           {{"past.none_create", "none finished: keyed create", "ms"},
            {"past.none_get", "none finished: get of a pending job", "ms"},
            {"past.none_list_key", "none finished: list by key", "ms"},
            {"past.none_list_past_key", "none finished: list by a key of the past", "ms"},
            {"past.none_list_done", "none finished: list of the done jobs of a type", "ms"},
            {"past.none_reschedule", "none finished: reschedule", "ms"},
            {"past.none_cancel_key", "none finished: cancel by key", "ms"},
            {"past.none_cancel_past_key", "none finished: cancel by a key of the past", "ms"},
            {"past.none_get_finished", "none finished: get of a finished job", "ms"},
            {"past.unknown_create", "many, no statistics: keyed create", "ms"},
            {"past.unknown_get", "many, no statistics: get of a pending job", "ms"},
            {"past.unknown_list_key", "many, no statistics: list by key", "ms"},
            {"past.unknown_list_past_key", "many, no statistics: list by a key of the past", "ms"},
            {"past.unknown_list_done", "many, no statistics: list of the done jobs of a type", "ms"},
            {"past.unknown_reschedule", "many, no statistics: reschedule", "ms"},
            {"past.unknown_cancel_key", "many, no statistics: cancel by key", "ms"},
            {"past.unknown_cancel_past_key", "many, no statistics: cancel by a key of the past", "ms"},
            {"past.unknown_get_finished", "many, no statistics: get of a finished job", "ms"},
            {"past.known_create", "many, fresh statistics: keyed create", "ms"},
            {"past.known_get", "many, fresh statistics: get of a pending job", "ms"},
            {"past.known_list_key", "many, fresh statistics: list by key", "ms"},
            {"past.known_list_past_key", "many, fresh statistics: list by a key of the past", "ms"},
            {"past.known_list_done", "many, fresh statistics: list of the done jobs of a type", "ms"},
            {"past.known_reschedule", "many, fresh statistics: reschedule", "ms"},
            {"past.known_cancel_key", "many, fresh statistics: cancel by key", "ms"},
            {"past.known_cancel_past_key", "many, fresh statistics: cancel by a key of the past", "ms"},
            {"past.known_get_finished", "many, fresh statistics: get of a finished job", "ms"}}},
          {"leases",
           "What consumers say of leases, and retries, over 32 connections",
           {{"leases.alone_p99", "acknowledgements alone, p99", "ms"},
            {"leases.beside_p99", "beside 32 callers that list a rare type over a million done jobs", "ms"},
            {"leases.extend", "POST /v1/leases/extend, a lease each", "req/s"},
            {"leases.extend_x", "  x the floor beside it", "x"},
            {"leases.extend_p50", "  p50", "ms"},
            {"leases.extend_p99", "  p99", "ms", "20"},
            {"leases.ack", "POST /v1/leases/ack, a lease each", "req/s"},
            {"leases.ack_x", "  x the floor beside it", "x"},
            {"leases.ack_p50", "  p50", "ms"},
            {"leases.ack_p99", "  p99", "ms", "20"},
            {"leases.nack", "POST /v1/leases/nack, a lease each", "req/s"},
            {"leases.nack_x", "  x the floor beside it", "x"},
            {"leases.nack_p50", "  p50", "ms"},
            {"leases.nack_p99", "  p99", "ms", "20"},
            {"leases.retry", "POST /v1/jobs/{id}/retry", "req/s"},
            {"leases.retry_x", "  x the floor beside it", "x"},
            {"leases.retry_p50", "  p50", "ms"},
            {"leases.retry_p99", "  p99", "ms", "20"}}},
          {"mixed",
           "All verbs at once at fixed rates, and 3,000 jobs/s fired",
           {{"mixed.quiet_p99", "lateness p99 of the fired jobs alone", "ms"},
            {"mixed.p99", "lateness p99 beside the verbs", "ms"},
            {"mixed.ratio", "  x alone", "x", "2"},
            {"mixed.create", "3,000 creates/s: answered", "req/s"},
            {"mixed.create_p99", "  p99", "ms", "30"},
            {"mixed.cancel_key", "2,000 cancels by key/s: answered", "req/s"},
            {"mixed.cancel_key_p99", "  p99", "ms", "30"},
            {"mixed.get", "1,000 gets/s: answered", "req/s"},
            {"mixed.get_p99", "  p99", "ms", "30"},
            {"mixed.list", "200 lists by key/s: answered", "req/s"},
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
          {"types",
           "Many types: 500 beside one, 64 shards; processor time of node and PostgreSQL",
           {{"types.one_idle", "one type, idle", "ms/min"},
            {"types.many_idle", "500 types, idle", "ms/min", "<= 2 x one"},
            {"types.one_busy", "one type, 100 jobs/s", "ms/min"},
            {"types.many_busy", "500 types, 100 jobs/s of all together", "ms/min", "<= 1.5 x one"},
            {"types.one_late_p99", "  p99 of the lateness, one type", "ms"},
            {"types.many_late_p99", "  500 types", "ms"},
            {"types.stats", "GET /v1/stats with 500 types", "ms", "<= 30"},
            {"types.asleep_idle", "500 types, each with a far-off job in most lanes, idle", "ms/min", "<= 2 x one"},
            {"types.asleep_stats", "  GET /v1/stats", "ms", "<= 30"},
            {"types.resident", "resident memory of the node", "MB", "<= 150", "", Rounds::most}}},
          {"overload",
           "Half as much again as is held: one noop type, and another at 50/s",
           {{"overload.held", "the highest rate with p99 below a second", "jobs/s"},
            {"overload.held_p99", "  its p99", "ms"},
            {"overload.done", "done of one and a half times that", "jobs/s"},
            {"overload.share", "  of the held rate", "x", ">= 0.95"},
            {"overload.latest", "  the latest start", "s", "<= behind, + 1"},
            {"overload.behind", "  from the last deadline to the last job done", "s"},
            {"overload.light_quiet_p99", "p99 of the other type, beside 1,000/s", "ms"},
            {"overload.light_p99", "  beside the overload", "ms", "<= 2 x quiet"}}},
          {"unasked",
           "Jobs of 20 pull types that are due and that nobody asks for; processor time of node and PostgreSQL",
           {{"unasked.idle", "no jobs", "ms/min"}, {"unasked.backlog", "200,000 jobs", "ms/min", "as idle"}}},
          {"registry",
           "Ten thousand types",
           {{"registry.put", "PUT /v1/types, one after the other", "ms"},
            {"registry.idle", "idle, node and PostgreSQL", "ms/min"},
            {"registry.late_p50", "100 jobs/s of 100 of them: lateness p50", "ms"},
            {"registry.late_p99", "  p99", "ms"},
            {"registry.stats", "GET /v1/stats", "ms"},
            {"registry.resident", "resident memory of the node", "MB"}}},
          {"drift",
           "The node's clock runs faster than the database's: p99 of the lateness",
           {{"drift.none", "as fast", "ms"},
            {"drift.fast", "500 millionths faster", "ms"},
            {"drift.fast_ratio", "  to none", "x", "<= 2"},
            {"drift.slow", "500 millionths slower", "ms"},
            {"drift.slow_ratio", "  to none", "x", "<= 2"}}},
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
          {"storm",
           "Storm of one instant beside another type",
           {{"storm.rate", "fired in the storm", "jobs/s"},
            {"storm.spread_25", "shard ahead to shard behind, a quarter done", "x", "<= 2"},
            {"storm.spread_50", "  half done", "x", "<= 2"},
            {"storm.spread_75", "  three quarters done", "x", "<= 2"},
            {"storm.peak", "resident memory at its peak, most", "MB", "", "", Rounds::most},
            {"storm.calm_p50", "the other type alone: p50", "ms"},
            {"storm.calm_p99", "  p99", "ms"},
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
            {"history.asked_ratio", "lateness p99 while reports are read, to without", "x", "<= 1.2"},
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
