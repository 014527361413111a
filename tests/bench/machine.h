// Describes the machine and the PostgreSQL server on which the figures were measured.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/postgres_server.h"

namespace tocsin::bench {

// Pairs of a property and its value, in the order of the report.
using Machine = std::vector<std::pair<std::string, std::string>>;

Machine describe_machine(const PostgresServer& server);

// The load average of the last minute.
double load_average();

}  // namespace tocsin::bench
