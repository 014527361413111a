#include "bench/report_figures.h"

#include <array>
#include <string>
#include <vector>

#include "bench/report_reads.h"

namespace tocsin::bench {

Section reports_section() {
  Section section{"reports", "Reports beside millions of jobs, 30 types and a year of slots", {}};
  const auto add = [&](const std::vector<ReportRead>& reads, const std::string& target) {
    for (const ReportRead& read : reads) {
      section.figures.push_back({"reports." + read.name + ".p50", read.name + ": p50", "ms"});
      section.figures.push_back({"reports." + read.name + ".max", "  slowest", "ms", target});
    }
  };
  add(usual_reads(), "< 200");
  add(reads_of_a_year(), "< 200");
  add(reads_without_kept_days(), "");
  section.figures.push_back({"reports.horizon_count", "the horizon of one type counted", "ms"});
  section.figures.push_back({"reports.horizon_count_max", "  slowest", "ms", "< 2000", "", Figure::Rounds::most});
  section.figures.push_back({"reports.kept_in", "days of time zones of one UTC day, added up", "s"});
  for (const auto& [name, title, unit, target] :
       std::vector<std::array<const char*, 4>>{{"quiet_p99", "lateness p99 quiet", "ms", ""},
                                               {"views_p99", "  while all views are read in a loop", "ms", ""},
                                               {"views_ratio", "  to quiet, round by round", "x", "<= 1.1"},
                                               {"views_reads", "  reads of a view", "/s", ""},
                                               {"paced_p99", "  while a view is read every second", "ms", ""},
                                               {"paced_ratio", "  to quiet, round by round", "x", "<= 1.1"},
                                               {"burner_p99", "  while a session computes without a pause", "ms", ""},
                                               {"burner_ratio", "  to quiet, round by round", "x", ""},
                                               {"pages_p99", "  while 50 pages refresh", "ms", ""},
                                               {"pages_ratio", "  to quiet, round by round", "x", "<= 1.1"},
                                               {"pages_requests", "  requests of pages", "/s", ""}})
    section.figures.push_back({std::string("readers.") + name, title, unit, target});
  return section;
}

Section counting_section() {
  Section section{"counting", "What counting events costs, beside a database that keeps states alone", {}};
  for (const auto& [work, title] :
       std::vector<std::array<const char*, 2>>{{"batches", "a whole life in batches of 500"},
                                               {"alone", "one caller: create, due at once, and fire"},
                                               {"single", "single creates by 32 callers"}}) {
    const std::string prefix = std::string("counting.") + work;
    section.figures.push_back({prefix + ".us", title, "us/job"});
    section.figures.push_back({prefix + ".us_plain", "  without events", "us/job"});
    section.figures.push_back({prefix + ".time_ratio", "  with to without, pair by pair", "x", "<= 1.03"});
    section.figures.push_back({prefix + ".wal", "  WAL", "bytes/job"});
    section.figures.push_back({prefix + ".wal_plain", "  without events", "bytes/job"});
    section.figures.push_back({prefix + ".wal_ratio", "  with to without, pair by pair", "x", "<= 1.05"});
  }
  return section;
}

}  // namespace tocsin::bench
