// A year of report slots, written straight into the tables in the shape that nodes write them.
#pragma once

#include <string>
#include <vector>

namespace tocsin::bench {

// 15-minute slots, hours and days of the last year for each known type, with histograms of lateness and duration; what
// became of each day's jobs, reasons of deaths, the horizon and audit records; with statistics. Days of time zones are
// not kept yet.
void write_report_year(const std::string& database);

// Adds up the days of time zones that begin on one UTC day, as nodes do once a day. Returns the seconds it took.
double keep_zone_days_of_a_day(const std::string& database);
// Counts the horizon of each type once, as nodes do, and leaves all of them to be counted again. Returns the ms of
// each.
std::vector<double> horizon_counts_ms(const std::string& database);
// Adds up those of the year of the zones that the measurement reads, and marks all others as done: nodes would work on
// them for half an hour. A node that runs may keep some meanwhile.
void keep_days_of_read_zones(const std::string& database);

}  // namespace tocsin::bench
