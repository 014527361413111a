#include "bench/report_reads.h"

#include <chrono>
#include <cstdio>

namespace tocsin::bench {
namespace {

std::string year_ago() {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()) -
                                        std::chrono::days(366));
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT00:00:00Z", int(day.year()), unsigned(day.month()),
                unsigned(day.day()));
  return text;
}

ReportRead view(const std::string& view, const std::string& range, const std::string& column = "slot") {
  return {view + " of " + range,
          "SELECT * FROM tocsin." + view + " WHERE " + column + " >= now() - interval '" + range + "'"};
}

ReportRead whole(const std::string& view, const std::string& name = "") {
  return {name.empty() ? view : view + name, "SELECT * FROM tocsin." + view};
}

ReportRead rest(const std::string& path) { return {"GET " + path.substr(0, path.find("from=")), path, true}; }

}  // namespace

const std::vector<ReportRead>& usual_reads() {
  static const std::vector<ReportRead> reads = [] {
    std::vector<ReportRead> all;
    for (const char* name : {"report_hour", "report_lateness", "report_duration"}) all.push_back(view(name, "7 days"));
    for (const char* name : {"report_day", "report_dead"}) all.push_back(view(name, "31 days"));
    all.push_back(view("report_outcome", "31 days", "created_day"));
    all.push_back({"report_day_at(Berlin) of 31 days",
                   "SELECT * FROM tocsin.report_day_at('Europe/Berlin', now() - interval '31 days')"});
    for (const char* name : {"report_slo", "report_delay", "horizon", "backlog"}) all.push_back(whole(name));
    all.push_back(view("audit", "1 day", "at"));
    for (const char* name : {"hour", "day", "lateness", "duration", "slo", "dead", "outcome", "delay", "horizon",
                             "backlog", "audit", "recent", "day?tz=Europe/Berlin"})
      all.push_back(rest(std::string("/v1/reports/") + name));
    for (const char* path : {"/v1/overview", "/v1/stats", "/v1/types", "/v1/shards", "/v1/nodes"})
      all.push_back(rest(path));
    return all;
  }();
  return reads;
}

const std::vector<ReportRead>& reads_of_a_year() {
  static const std::vector<ReportRead> reads = [] {
    std::vector<ReportRead> all;
    for (const char* name : {"report_hour", "report_lateness", "report_duration"}) {
      const std::string table = std::string("tocsin.") + name;
      const std::string sums =
          table == "tocsin.report_hour" ? "sum(created), sum(done), max(p99_ms)" : "sum(n), max(p99_ms)";
      all.push_back(
          {std::string(name) + " of the year by type", "SELECT biz_type, " + sums + " FROM " + table + " GROUP BY 1"});
      all.push_back({std::string(name) + " of the year, 263,000 rows", "SELECT * FROM " + table});
    }
    for (const char* name : {"report_day", "report_dead", "report_outcome"}) all.push_back(whole(name, " of the year"));
    for (const char* zone : {"UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"})
      all.push_back({std::string("report_day_at(") + zone + ") of the year",
                     std::string("SELECT * FROM tocsin.report_day_at('") + zone + "')"});
    for (const char* name : {"hour", "day", "lateness", "duration", "dead", "outcome", "delay", "audit"})
      all.push_back(rest(std::string("/v1/reports/") + name + "?limit=1000&from=" + year_ago()));
    all.push_back(rest("/v1/reports/day?tz=Europe/Berlin&limit=1000&from=" + year_ago()));
    return all;
  }();
  return reads;
}

const std::vector<ReportRead>& reads_without_kept_days() {
  static const std::vector<ReportRead> reads = {
      {"report_day_at(Berlin) of 31 days, none kept",
       "SELECT * FROM tocsin.report_day_at('Europe/Berlin', now() - interval '31 days')"},
      {"report_day_at(Berlin) of the year, none kept", "SELECT * FROM tocsin.report_day_at('Europe/Berlin')"}};
  return reads;
}

}  // namespace tocsin::bench
