// The floor to compare verbs with: what PostgreSQL alone can do, as commits of single rows per second.
#pragma once

#include <string>

#include "bench/figures.h"
#include "bench/wrk.h"

namespace tocsin::bench {

// Transactions per second of 32 pgbench clients. A variable that the script counts by `\set i :i + 1` begins at 0 in
// each client.
double pgbench_rate(const std::string& database, const std::string& script, double length_s);  // transactions/s

// The same with the time per transaction.
struct PgbenchReport {
  double per_second = 0, p50_ms = 0, p99_ms = 0;
};
PgbenchReport run_pgbench(const std::string& database, const std::string& script, double length_s);

// Commits per second of one row each, into a table with the columns, checks and indexes of a live table, but no rule of
// Tocsin.
double verb_floor(const std::string& database, double length_s);

// Adds the figures NAME, NAME_x (its ratio to `floor`), NAME_p50 and NAME_p99.
void note_verb(Results& results, const std::string& name, const WrkReport& report, double floor);
void note_verb(Results& results, const std::string& name, const PgbenchReport& report, double floor);

}  // namespace tocsin::bench
