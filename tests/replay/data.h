// Recorded deadlines: a year of a city's service requests, with the city's own deadline for each, and what must happen
// to them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tocsin::replay {

// Seconds since 1970 of the recorded wall clock, read as UTC.
using DataTime = std::int64_t;

enum class Truth { fire, cancel, either };          // computed from the recorded times by an independent program
enum class Published { nothing, ontime, overdue };  // the city's own verdict

struct Request {
  std::string id;
  DataTime opened = 0;
  DataTime target = 0;
  std::optional<DataTime> closed;  // never before opened
  Published published = Published::nothing;
  Truth truth = Truth::either;
};

// The folder holds boston311_2015.csv.gz and truth.py.
bool has_data(const std::string& folder);

// Every request that has a deadline, by the time it was opened. `guard` in data-seconds: the truth of those closed so
// close to their deadline is `either`. Throws std::runtime_error.
std::vector<Request> read_requests(const std::string& folder, double guard);

// "2015-02-10" or "2015-02-10 13:58:23". Throws std::runtime_error.
DataTime parse_data_time(const std::string& text);

}  // namespace tocsin::replay
