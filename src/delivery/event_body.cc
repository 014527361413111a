#include "delivery/event_body.h"

#include <cstdio>

namespace tocsin {

std::string rfc3339(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::string event_body(const std::string& type_json, const Job& job, const std::string& job_json) {
  return R"({"type":)" + type_json + R"(,"timestamp":")" + rfc3339(job.action_time) + R"(","data":)" + job_json + "}";
}

}  // namespace tocsin
