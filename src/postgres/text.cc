#include "postgres/text.h"

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/assert.h"

namespace tocsin {

std::string to_pg(WallTime time) {
  if (time == WallTime::min()) return "-infinity";
  if (time == WallTime::max()) return "infinity";
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d.%06d+00", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

namespace {

// Tables can be written by others: what this cannot read is an error of the call, not a mistake of the program.
void check_time(bool is_right, std::string_view text) {
  if (!is_right) throw std::range_error("the time \"" + std::string(text) + "\" is out of range");
}

int digits(std::string_view text, std::size_t at, std::size_t n) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + n, value);
  check_time(error == std::errc() && end == text.data() + at + n, text);
  return value;
}

}  // namespace

WallTime wall_time_from_pg(std::string_view text) {
  if (text == "infinity") return WallTime::max();
  if (text == "-infinity") return WallTime::min();
  // 2026-11-21 09:05:35[.123456]+00
  check_time(text.size() >= 22 && text[4] == '-' && text.ends_with("+00"), text);
  using namespace std::chrono;
  const sys_days day{year(digits(text, 0, 4)) / digits(text, 5, 2) / digits(text, 8, 2)};
  Duration rest = hours(digits(text, 11, 2)) + minutes(digits(text, 14, 2)) + seconds(digits(text, 17, 2));
  if (text[19] == '.') {
    const std::size_t n = text.size() - 3 - 20;
    int fraction = digits(text, 20, n);
    for (std::size_t i = n; i < 6; ++i) fraction *= 10;
    rest += microseconds(fraction);
  }
  return day + rest;
}

void PgArray::comma() {
  if (text_.size() > 1) text_ += ',';
}

void PgArray::add(std::int64_t value) {
  comma();
  char digits_text[24];
  const auto end = std::to_chars(digits_text, digits_text + sizeof digits_text, value).ptr;
  text_.append(digits_text, end);
}

void PgArray::add(WallTime value) {
  comma();
  text_ += '"';
  text_ += to_pg(value);
  text_ += '"';
}

void PgArray::add_text(std::string_view value) {
  comma();
  text_ += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
}

void PgArray::add_null() {
  comma();
  text_ += "NULL";
}

namespace {

std::optional<std::string> optional_text(const pqxx::field& field) {
  if (field.is_null()) return {};
  return std::string(field.c_str(), field.size());
}

std::optional<WallTime> optional_time(const pqxx::field& field) {
  if (field.is_null()) return {};
  return wall_time_from_pg({field.c_str(), field.size()});
}

std::vector<JobError> errors_of(const pqxx::field& field) {
  std::vector<JobError> errors;
  if (field.is_null()) return errors;
  const auto list = nlohmann::json::parse(field.c_str(), field.c_str() + field.size());
  for (const auto& entry : list) {
    errors.push_back({entry.value("at", ""), entry["node"].is_string() ? entry["node"].get<std::string>() : "",
                      entry.value("attempt", 0), entry.value("message", "")});
  }
  return errors;
}

}  // namespace

Job job_from_row(const pqxx::row& row, int first) {
  const auto at = [&](int column) { return row[first + column]; };
  Job job;
  job.job_id = at(0).as<JobId>();
  job.biz_id = std::string(at(1).c_str(), at(1).size());
  job.type_id = at(2).as<TypeId>();
  job.status = static_cast<JobStatus>(at(3).as<int>());
  job.action_time = *optional_time(at(4));
  job.fire_at = *optional_time(at(5));
  job.attempts = at(6).as<int>();
  job.max_attempts = at(7).as<int>();
  job.attribute_json = optional_text(at(8)).value_or("");
  job.idempotency_key = optional_text(at(9));
  job.node = optional_text(at(10));
  job.traceparent = optional_text(at(11));
  job.gmt_create = *optional_time(at(12));
  job.gmt_modified = *optional_time(at(13));
  job.started_at = optional_time(at(14));
  job.finished_at = optional_time(at(15));
  job.errors = errors_of(at(16));
  job.late_from = optional_time(at(17));
  return job;
}

}  // namespace tocsin
