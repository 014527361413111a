// Where the figures were measured: without it they say nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/postgres_server.h"

namespace tocsin::bench {

// What is described, and how; in the order it is printed.
using Machine = std::vector<std::pair<std::string, std::string>>;

Machine describe_machine(const PostgresServer& server);

// Programs that want to run right now, on average over the last minute.
double load_average();

}  // namespace tocsin::bench
