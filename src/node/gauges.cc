#include "node/gauges.h"

#include <algorithm>

namespace tocsin {

void add_gauges_of(const Databases& databases, Metrics& metrics) {
  const auto sum = [&](const char* name, const char* help, double (*of)(const Database&)) {
    metrics.add_gauge(name, help, [&databases, of] {
      double all = 0;
      for (const auto& database : databases) all += of(*database);
      return all;
    });
  };
  sum("tocsin_owned_shards", "Shards that this node scans",
      [](const Database& database) { return static_cast<double>(database.shards()); });
  sum("tocsin_known_jobs", "Candidates in memory",
      [](const Database& database) { return static_cast<double>(database.shared().known.size()); });
  sum("tocsin_due_jobs", "Due jobs waiting for a claim",
      [](const Database& database) { return static_cast<double>(database.shared().due.size()); });
  sum("tocsin_backlog_lanes", "Lanes whose backlog is claimed straight from the table",
      [](const Database& database) { return static_cast<double>(database.shared().due.backlog_lanes()); });
  sum("tocsin_running_jobs", "Claimed jobs on this node",
      [](const Database& database) { return static_cast<double>(database.shared().gate.running()); });
  metrics.add_gauge("tocsin_clock_uncertainty_seconds", "How far the database's clock may lie ahead of the estimate",
                    [&databases] {
                      Duration most{0};
                      for (const auto& database : databases)
                        most = std::max(most, database->shared().db_clock.uncertainty());
                      return std::chrono::duration<double>(most).count();
                    });
  for (const auto& each : databases) {
    const Database& database = *each;
    const Metrics::Labels labels{{"database", database.name()}};
    metrics.add_gauge(
        "tocsin_database_up", "1 when the database answers, 0 when it does not",
        [&database] { return database.is_answering() ? 1.0 : 0.0; }, labels);
    metrics.add_gauge(
        "tocsin_database_shards", "Shards of the database that this node scans",
        [&database] { return static_cast<double>(database.shards()); }, labels);
  }
}

}  // namespace tocsin
