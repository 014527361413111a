#include "bench/isolation_figures.h"

namespace tocsin::bench {

Section isolation_section() {
  Section section{"isolation", "One slow type beside others", {}};
  const auto add = [&](const std::string& name, const std::string& what, const std::string& unit,
                       const std::string& aim = "") {
    section.figures.push_back({"isolation." + name, what, unit, aim});
  };
  add("gateway_done", "Six types on one gateway that answers after 10 s: done", "jobs/s", "25.6: its connections");
  add("gateway_released", "  released", "% of starts", "<= 5");
  add("gateway_wal", "  WAL", "kB/job", "that of a claimed job (life)");
  add("gateway_spread", "  most done of a type to least", "x", "<= 1.5");
  add("drop_late_latest", "  latest first attempt where 5 s is the limit", "s", "<= 6");
  for (const char* n : {"1", "300", "1000"}) {
    add("beside_" + std::string(n) + "_p50", "Webhook beside 30,000/s of " + std::string(n) + " noop types: p50", "ms");
    add("beside_" + std::string(n) + "_p99", "  p99", "ms", n == std::string("1") ? "" : "<= 2 x one type");
  }
  for (const char* n : {"0", "20", "200"}) {
    add("slow_" + std::string(n) + "_p50", "Webhook at 10/s beside " + std::string(n) + " slow endpoints: p50", "ms");
    add("slow_" + std::string(n) + "_p99", "  p99", "ms", n == std::string("0") ? "" : "<= 2 x none, + 20");
  }
  add("answering_scans", "250 types, 1,000 jobs/s of 50 of them: scan statements", "/s");
  add("answering_scan_ms", "  their time", "ms/s");
  add("refusing_scans", "  the endpoints of those 50 refuse connections", "/s");
  add("refusing_scan_ms", "  their time", "ms/s", "<= 2 x without");
  add("exhausted_dead_s", "Exhausted jobs at the end of a backlog: all are dead after", "s", "<= 60: two sweeps");
  return section;
}

Section cluster_section() {
  Section section{"cluster", "Nodes on one database: a gateway, 20 slow endpoints, 100 noop types, a healthy type", {}};
  const auto add = [&](const std::string& name, const std::string& what, const std::string& aim = "<= 25") {
    const std::string prefix = "cluster." + name;
    auto& figures = section.figures;
    figures.push_back({prefix + "_p50", what + ": the healthy type's p50", "ms"});
    figures.push_back({prefix + "_p99", "  p99", "ms", aim});
    figures.push_back({prefix + "_latest", "  most", "ms"});
    figures.push_back({prefix + "_first_p99", "  p99 of what the first node ran, which never stops", "ms", "<= 25"});
    figures.push_back({prefix + "_released", "  released", "% of starts", "<= 5"});
    figures.push_back({prefix + "_gateway", "  done by the gateway", "jobs/s", "128 per node, until all are done"});
    figures.push_back({prefix + "_spread", "  healthy jobs, node with most to least", "x", "<= 2"});
  };
  add("1", "one node");
  add("2", "two");
  add("4", "four");
  add("stopped", "two, one paused for 3 s", "<= 3,000: the stop");
  add("notifications_lost", "two, notifications lost");
  add("promoted", "two, after a failover");
  return section;
}

Section types_section() {
  return {"types",
          "Many types: 1,000 beside one, 64 shards; processor time of node and PostgreSQL",
          {{"types.one_idle", "one type, idle", "ms/min"},
           {"types.many_idle", "1,000 types, idle", "ms/min", "<= 2 x one"},
           {"types.one_busy", "one type, 100 jobs/s", "ms/min"},
           {"types.many_busy", "1,000 types, 100 jobs/s of all together", "ms/min", "<= 1.5 x one"},
           {"types.one_late_p99", "  p99 of the lateness, one type", "ms"},
           {"types.many_late_p99", "  1,000 types", "ms", "<= 20"},
           {"types.stats", "GET /v1/stats with 1,000 types", "ms", "<= 30"},
           {"types.far_off_idle", "1,000 types, each with a far-off job in most lanes, idle", "ms/min", "<= 2 x one"},
           {"types.far_off_stats", "  GET /v1/stats", "ms", "<= 30"},
           {"types.many_far_off_idle", "1,000 types, 40 far-off jobs in each lane, idle", "ms/min"},
           {"types.resident", "resident memory of the node", "MB", "<= 150", "", Figure::Rounds::most}}};
}

Section many_lanes_section() {
  return {"many_lanes",
          "1,000 types on 1,024 shards; processor time of node and PostgreSQL",
          {{"many_lanes.one_idle", "one type, idle", "ms/min"},
           {"many_lanes.idle", "1,000 types, idle", "ms/min", "<= 2 x one"},
           {"many_lanes.one_late_p50", "one type, 100 jobs/s: lateness p50", "ms"},
           {"many_lanes.one_late_p99", "  p99", "ms", "<= 20"},
           {"many_lanes.late_p50", "1,000 types, 100 jobs/s of all together: p50", "ms"},
           {"many_lanes.late_p99", "  p99", "ms", "<= 20"},
           {"many_lanes.far_off_idle", "1,000 types, 64 far-off jobs of each, idle", "ms/min"},
           {"many_lanes.stats", "  GET /v1/stats", "ms", "<= 30"},
           {"many_lanes.resident", "resident memory of the node", "MB", "<= 150", "", Figure::Rounds::most}}};
}

Section overload_section() {
  return {"overload",
          "Half as much again as is held: one noop type, and another at 50/s",
          {{"overload.held", "the highest rate with p99 below a second", "jobs/s"},
           {"overload.held_p99", "  its p99", "ms"},
           {"overload.done", "done of one and a half times that", "jobs/s"},
           {"overload.share", "  of the held rate", "x", ">= 0.95"},
           {"overload.latest", "  the latest start", "s", "<= behind, + 1"},
           {"overload.behind", "  from the last deadline to the last job done", "s"},
           {"overload.light_quiet_p99", "p99 of the other type, beside 1,000/s", "ms"},
           {"overload.light_p99", "  beside the overload", "ms", "<= 2 x quiet"}}};
}

Section pull_backlog_section() {
  return {
      "pull_backlog",
      "Due jobs of 20 pull types without polls; processor time of node and PostgreSQL",
      {{"pull_backlog.idle", "no jobs", "ms/min"}, {"pull_backlog.backlog", "200,000 jobs", "ms/min", "as no jobs"}}};
}

Section registry_section() {
  return {"registry",
          "Ten thousand types",
          {{"registry.put", "PUT /v1/types, one after the other", "ms"},
           {"registry.idle", "idle, node and PostgreSQL", "ms/min"},
           {"registry.late_p50", "100 jobs/s of 100 of them: lateness p50", "ms"},
           {"registry.late_p99", "  p99", "ms", "<= 20"},
           {"registry.stats", "GET /v1/stats", "ms", "<= 30"},
           {"registry.resident", "resident memory of the node", "MB", "<= 150"}}};
}

Section drift_section() {
  return {"drift",
          "The node's clock and the database's run apart: p99 of the lateness",
          {{"drift.none", "as fast", "ms"},
           {"drift.fast_500", "the node's 500 millionths faster", "ms"},
           {"drift.fast_500_ratio", "  to none", "x", "<= 2"},
           {"drift.fast_200", "200 millionths faster", "ms"},
           {"drift.fast_200_ratio", "  to none", "x", "<= 2"},
           {"drift.slow_200", "200 millionths slower", "ms"},
           {"drift.slow_200_ratio", "  to none", "x", "<= 2"},
           {"drift.slow_500", "500 millionths slower", "ms"},
           {"drift.slow_500_ratio", "  to none", "x", "<= 2"},
           {"drift.steps", "the database's set by 5 ms every 5 s, forward and back", "ms"},
           {"drift.steps_ratio", "  to none", "x", "<= 2"},
           {"drift.steps_most", "  the latest of all", "ms"}}};
}

}  // namespace tocsin::bench
