#include "replay/day_counts.h"

#include <chrono>
#include <cstdio>
#include <unordered_set>

#include "cli/pause.h"

namespace tocsin::replay {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kFolded(10'000);

std::string text(const DayCounts& counts) {
  return std::to_string(counts.created) + " created, " + std::to_string(counts.done) + " done, " +
         std::to_string(counts.cancelled) + " cancelled, " + std::to_string(counts.dead) + " dead";
}

// The rows of a replay that runs over midnight are of two days.
CountsByDay reported(const Connection& connection, const std::string& report, const std::string& prefix) {
  CountsByDay counts;
  for (const Json& row : read_pages(connection, "/v1/reports/" + report, {{"limit", "1000"}}, true).items) {
    const auto type = row.at("biz_type").get<std::string>();
    if (!type.starts_with(prefix)) continue;
    DayCounts& of_type = counts[type];
    of_type.created += row.at("created").get<std::int64_t>();
    of_type.done += row.at("done").get<std::int64_t>();
    of_type.cancelled += row.at("cancelled").get<std::int64_t>();
    of_type.dead += row.at("dead").get<std::int64_t>();
  }
  return counts;
}

std::int64_t ended(const CountsByDay& counts) {
  std::int64_t n = 0;
  for (const auto& [type, of_type] : counts) n += of_type.done + of_type.cancelled + of_type.dead;
  return n;
}

void compare(const std::string& report, const CountsByDay& said, const CountsByDay& recorded,
             std::vector<std::string>& found) {
  CountsByDay all = said;
  all.insert(recorded.begin(), recorded.end());
  const auto of = [](const CountsByDay& counts, const std::string& type) {
    const auto it = counts.find(type);
    return it == counts.end() ? DayCounts{} : it->second;
  };
  for (const auto& [type, unused] : all)
    if (of(said, type) != of(recorded, type))
      found.push_back(report + " of " + type + ": " + text(of(said, type)) + "; recorded: " + text(of(recorded, type)));
}

}  // namespace

std::string day_of(const Request& request) {
  const std::chrono::year_month_day day(
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(request.opened))));
  char name[32];
  std::snprintf(name, sizeof name, "%04d-%02u-%02u", int(day.year()), unsigned(day.month()), unsigned(day.day()));
  return name;
}

CountsByDay counts_of_records(const std::vector<Job>& jobs, const std::vector<Delivery>& deliveries, DataTime cut) {
  std::unordered_set<std::string> delivered;
  for (const Delivery& delivery : deliveries) delivered.insert(delivery.biz_id);
  CountsByDay counts;
  for (const Job& job : jobs) {
    DayCounts& day = counts[job.biz_type];
    ++day.created;
    const bool is_told = job.request.truth != Truth::either && job.request.target <= cut;
    const bool fires = is_told ? job.request.truth == Truth::fire : delivered.contains(job.request.id);
    ++(fires ? day.done : day.cancelled);
  }
  return counts;
}

std::vector<std::string> differences(const Connection& connection, const std::string& prefix,
                                     const CountsByDay& recorded) {
  const auto end = SteadyClock::now() + kFolded;
  while (ended(reported(connection, "outcome", prefix)) < ended(recorded) && SteadyClock::now() < end)
    pause_for(milliseconds(100));
  std::vector<std::string> found;
  for (const char* report : {"outcome", "day"}) compare(report, reported(connection, report, prefix), recorded, found);
  return found;
}

}  // namespace tocsin::replay
