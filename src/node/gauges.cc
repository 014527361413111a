#include "node/gauges.h"

#include <algorithm>
#include <map>

namespace tocsin {
namespace {

std::map<std::string, TypeState> type_states_of(const Databases& databases) {
  std::vector<std::vector<TypeState>> states;
  for (const auto& database : databases) states.push_back(database->type_states());
  return states_by_type(states);
}

void add_type_gauges(const Databases& databases, Metrics& metrics) {
  metrics.add_gauges("tocsin_jobs", "Jobs by type and status, the same on every node", [&databases] {
    std::vector<LabelledValue> values;
    for (const auto& [name, state] : type_states_of(databases))
      for (std::size_t i = 0; i < state.jobs.size(); ++i)
        values.push_back({{{"biz_type", name}, {"status", std::string(to_string(static_cast<JobStatus>(i)))}},
                          static_cast<double>(state.jobs[i])});
    return values;
  });
  metrics.add_gauges("tocsin_oldest_due_seconds", "How long the oldest due job of a type has waited; 0 while paused",
                     [&databases] {
                       std::vector<LabelledValue> values;
                       for (const auto& [name, state] : type_states_of(databases))
                         values.push_back({{{"biz_type", name}}, state.oldest_due_s});
                       return values;
                     });
}

}  // namespace

std::map<std::string, TypeState> states_by_type(const std::vector<std::vector<TypeState>>& databases) {
  TypeLabels labels;
  std::map<std::string, TypeState> all;
  for (const auto& states : databases) {
    for (const TypeState& state : states) {
      TypeState& sum = all[labels.of(state.name)];
      for (std::size_t i = 0; i < sum.jobs.size(); ++i) sum.jobs[i] += state.jobs[i];
      sum.oldest_due_s = std::max(sum.oldest_due_s, state.oldest_due_s);
    }
  }
  return all;
}

std::vector<LabelledValue> paused_types(const TypeCatalog& catalog, WallTime now) {
  TypeLabels labels;
  std::map<std::string, double> paused;
  for (const auto& type : catalog.types)
    if (type->is_paused(now)) ++paused[labels.of(type->name)];
  std::vector<LabelledValue> values;
  values.reserve(paused.size());
  for (const auto& [name, n] : paused) values.push_back({{{"biz_type", name}}, n});
  return values;
}

std::vector<LabelledValue> target_shares(const TypeCatalog& catalog) {
  std::vector<LabelledValue> values;
  for (const auto& type : catalog.types)
    if (type->slo && values.size() < TypeLabels::kMost)
      values.push_back({{{"biz_type", type->name}}, type->slo->share});
  return values;
}

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
  sum("tocsin_due_jobs", "Due jobs in memory that wait for a claim; a backlog waits in its table",
      [](const Database& database) { return static_cast<double>(database.shared().due.size()); });
  sum("tocsin_backlog_lanes", "Lanes whose backlog is claimed straight from the table",
      [](const Database& database) { return static_cast<double>(database.shared().due.backlog_lanes()); });
  sum("tocsin_running_jobs", "Claimed jobs on this node",
      [](const Database& database) { return static_cast<double>(database.shared().limiter.running()); });
  sum("tocsin_history_withheld_tables", "History tables kept because only the database's clock says they are old",
      [](const Database& database) { return static_cast<double>(database.withheld_history()); });
  metrics.add_gauge("tocsin_clock_uncertainty_seconds",
                    "How far a database's clock may be ahead of this node's estimate of it", [&databases] {
                      Duration most{0};
                      for (const auto& database : databases)
                        most = std::max(most, database->shared().db_clock.uncertainty());
                      return std::chrono::duration<double>(most).count();
                    });
  add_type_gauges(databases, metrics);
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
