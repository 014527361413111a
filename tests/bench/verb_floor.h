// The floor beside which verbs are measured: bare single-row commits.
#pragma once

#include <string>

#include "bench/figures.h"
#include "bench/wrk.h"

namespace tocsin::bench {

// What pgbench reports of 32 clients. A script that counts by `\set i :i + 1` begins at 0 in each client.
double pgbench_rate(const std::string& database, const std::string& script, double length_s);  // transactions/s

// The same, with the time that each transaction took.
struct PgbenchReport {
  double per_second = 0, p50_ms = 0, p99_ms = 0;
};
PgbenchReport run_pgbench(const std::string& database, const std::string& script, double length_s);

// Commits per second of one row each into a table with the columns, checks and indexes of a live table: what a create
// writes, without any rule.
double verb_floor(const std::string& database, double length_s);

// NAME, NAME_x (beside `floor`), NAME_p50 and NAME_p99.
void note_verb(Results& results, const std::string& name, const WrkReport& report, double floor);
void note_verb(Results& results, const std::string& name, const PgbenchReport& report, double floor);

}  // namespace tocsin::bench
