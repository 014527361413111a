// Writes a year of report rows into the tables directly, as nodes would have left them.
#pragma once

#include <string>
#include <vector>

namespace tocsin::bench {

// For each type of the last year: rows per 15 minutes, hour and day with histograms of lateness and duration, the
// outcomes of each day's jobs, and reasons of deaths. Also the horizon (what is due when), audit records, and the
// planner's statistics. Totals for days of time zones are not stored yet.
void write_report_year(const std::string& database);

// Stores the totals of time-zone days that begin on one UTC day, as nodes do once a day. Returns the seconds.
double keep_zone_days_of_a_day(const std::string& database);
// Counts the horizon of each type once, as nodes do, and marks all types as not counted. Returns the milliseconds of
// each count.
std::vector<double> horizon_counts_ms(const std::string& database);
// Stores the year's totals of the time zones that the measurement reads, and marks the other zones as done: nodes would
// need half an hour for them. A running node may store some meanwhile.
void keep_days_of_read_zones(const std::string& database);

}  // namespace tocsin::bench
