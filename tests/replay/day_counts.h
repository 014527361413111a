// What the reports say of each recorded day, beside what the records say of it. Every day has a type of its own: a
// replay takes seconds, so the days of the reports' clock cannot be those of the records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/rest_client.h"
#include "replay/plan.h"
#include "replay/receiver.h"

namespace tocsin::replay {

struct DayCounts {
  std::int64_t created = 0, done = 0, cancelled = 0, dead = 0;
  bool operator==(const DayCounts&) const = default;
};

// By type.
using CountsByDay = std::map<std::string, DayCounts>;

// "2015-02-10", of the day on which the request was opened.
std::string day_of(const Request& request);

// From the records. Only where they cannot tell (closed too close to the deadline, or due after `cut`) what was
// witnessed counts: whether the job was delivered.
CountsByDay counts_of_records(const std::vector<Job>& jobs, const std::vector<Delivery>& deliveries, DataTime cut);

// What differs between the records and the reports `outcome` and `day` of the types that begin with `prefix`, a line
// each. Waits until the reports have as many ended jobs as there are, or no longer than ten seconds.
std::vector<std::string> differences(const Connection& connection, const std::string& prefix,
                                     const CountsByDay& recorded);

}  // namespace tocsin::replay
