#include "api/report_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "api/json_writer.h"
#include "api/url.h"
#include "core/log_histogram.h"
#include "core/target.h"

namespace tocsin {
namespace {

using nlohmann::json;
using Histogram = std::map<int, std::int64_t>;

constexpr const char* kAuditKey = "audit_key";  // tells records of one instant apart; not shown

std::vector<ReportColumn> with_events() {
  std::vector<ReportColumn> columns = {{"slot", Merge::key}, {"biz_type", Merge::key}};
  for (const char* name : {"created", "done", "cancelled", "dead", "dropped_late", "revived", "attempts", "retried"})
    columns.push_back({name, Merge::sum});
  for (const ReportColumn late :
       {ReportColumn{"p50_ms", Merge::p50}, {"p90_ms", Merge::p90}, {"p99_ms", Merge::p99}, {"max_ms", Merge::max}})
    columns.push_back(late);
  return columns;
}

std::vector<ReportColumn> with_percentiles(std::vector<ReportColumn> columns) {
  for (const ReportColumn column : {ReportColumn{"n", Merge::sum},
                                    {"p50_ms", Merge::p50},
                                    {"p90_ms", Merge::p90},
                                    {"p99_ms", Merge::p99},
                                    {"max_ms", Merge::max}})
    columns.push_back(column);
  return columns;
}

std::vector<ReportColumn> recent_columns() {
  return with_percentiles({{"biz_type", Merge::key},
                           {"seconds", Merge::max},
                           {"created", Merge::sum},
                           {"done", Merge::sum},
                           {"dead", Merge::sum},
                           {"dropped_late", Merge::sum},
                           {"attempts", Merge::sum},
                           {"retried", Merge::sum},
                           {"missed", Merge::sum},
                           {"target_ms", Merge::first},
                           {"target_share", Merge::first}});
}

struct Key {
  std::vector<json> values;
  bool is_falling = false;  // by the first

  bool operator<(const Key& other) const {
    if (values.front() != other.values.front())
      return is_falling ? other.values.front() < values.front() : values.front() < other.values.front();
    return values < other.values;
  }
};

struct Row {
  json values = json::object();
  Histogram histogram;

  void add(const ReportShape& shape, const json& from);
  void add(const ReportShape& shape, const Row& other);
};

// The middle of the bucket that holds the quantile, but no more than the largest value seen; null without any.
json quantile(const Row& row, double q) {
  std::int64_t total = 0, seen = 0;
  for (const auto& [bucket, n] : row.histogram) total += n;
  if (total == 0) return nullptr;
  const auto wanted = static_cast<std::int64_t>(q * static_cast<double>(total));
  const double most =
      row.values.contains("max_ms") && row.values["max_ms"].is_number() ? row.values["max_ms"].get<double>() : INFINITY;
  for (const auto& [bucket, n] : row.histogram)
    if ((seen += n) > wanted) return std::min(most, histogram_value(bucket) / 1000);
  return nullptr;
}

void add_histogram(Histogram& histogram, const json& buckets) {
  if (!buckets.is_array()) return;
  constexpr int kShift = 44;  // as stored
  for (const json& each : buckets) {
    const auto packed = each.get<std::int64_t>();
    histogram[static_cast<int>(packed >> kShift)] += packed & ((std::int64_t{1} << kShift) - 1);
  }
}

void add_value(json& into, const json& value, Merge merge) {
  if (value.is_null()) return;
  if (into.is_null() || (merge == Merge::min && value < into) || (merge == Merge::max && into < value)) {
    into = value;
  } else if (merge == Merge::sum) {
    into = into.get<std::int64_t>() + value.get<std::int64_t>();
  } else if (merge == Merge::all) {
    into = into.get<bool>() && value.get<bool>();
  }
}

json derived(const Row& row, Merge merge) {
  const auto n = row.values.value("n", std::int64_t{0}), missed = row.values.value("missed", std::int64_t{0});
  const TargetUse use{n, missed, row.values.value("target_share", 1.0)};
  if (merge == Merge::share) return n > 0 ? 1 - static_cast<double>(missed) / static_cast<double>(n) : 1.0;
  if (merge == Merge::is_met) return use.is_met();
  return use.budget_left();
}

bool is_percentile(Merge merge) { return merge == Merge::p50 || merge == Merge::p90 || merge == Merge::p99; }

json shown(const Row& row, const ReportColumn& column) {
  switch (column.merge) {
    case Merge::p50:
    case Merge::p90:
    case Merge::p99:
      if (row.histogram.empty()) return row.values.value(column.name, json());  // as the only database has it
      return quantile(row, column.merge == Merge::p50 ? 0.5 : column.merge == Merge::p90 ? 0.9 : 0.99);
    case Merge::share:
    case Merge::budget:
    case Merge::is_met:
      return derived(row, column.merge);
    default:
      return row.values.value(column.name, json());
  }
}

json value_of(const json& row, const char* name) { return row.contains(name) ? row[name] : json(); }

void add_columns(const ReportShape& shape, json& into, const json& from, bool has_percentiles) {
  const bool is_later = value_of(into, "last_at") < value_of(from, "last_at");
  for (const ReportColumn& column : shape.columns) {
    if (!has_percentiles && is_percentile(column.merge)) continue;
    json& value = into[column.name];
    if (column.merge == Merge::last && is_later) value = nullptr;
    add_value(value, value_of(from, column.name), column.merge);
  }
}

void Row::add(const ReportShape& shape, const json& from) {
  add_columns(shape, values, from, true);
  add_histogram(histogram, from.value("buckets", json()));
}

// Percentiles come from histograms alone.
void Row::add(const ReportShape& shape, const Row& other) {
  add_columns(shape, values, other.values, false);
  for (const auto& [bucket, n] : other.histogram) histogram[bucket] += n;
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::map<Key, Row> merged(const ReportShape& shape, const std::vector<std::vector<std::string>>& parts) {
  std::map<Key, Row> rows;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const std::string& text : parts[part]) {
      const json from = json::parse(text);
      Key key{{}, shape.has_range && shape.is_newest_first};
      for (const ReportColumn& column : shape.columns)
        if (column.merge == Merge::key) key.values.push_back(from.value(column.name, json()));
      if (shape.report == Report::audit) {
        key.values.push_back(from.value(kAuditKey, json()));
        key.values.push_back(part);  // records are never one
      }
      rows[key].add(shape, from);
    }
  }
  return rows;
}

// A column whose values of several rows add up to something. The widths of the horizon count the same jobs.
bool has_total(const ReportShape& shape, const ReportColumn& column) {
  return shape.report != Report::horizon &&
         (is_percentile(column.merge) || column.merge == Merge::sum || std::string_view(column.name) == "max_ms");
}

// What the rows of this answer add up to: zeros without any.
void write_totals(JsonWriter& out, const ReportShape& shape, const Row& all) {
  if (std::ranges::none_of(shape.columns, [&](const ReportColumn& column) { return has_total(shape, column); })) return;
  out.key("totals").begin_object();
  for (const ReportColumn& column : shape.columns) {
    if (!has_total(shape, column)) continue;
    const json value = shown(all, column);
    out.key(column.name).raw(value.is_null() && column.merge == Merge::sum ? "0" : value.dump());
  }
  out.end_object();
}

// Begins the cursors of a report, so that a cursor of another report, or of another filter, is refused.
std::string cursor_mark(const ReportShape& shape, const std::string& filter) {
  return "report " + std::string(shape.name) + '\n' + filter;
}

}  // namespace

const std::vector<ReportShape>& report_shapes() {
  static const std::vector<ReportShape> shapes = {
      {Report::hour, "hour", "Events by hour and type", with_events()},
      {Report::day, "day", "Events by day and type", with_events()},
      {Report::lateness, "lateness", "Lateness of first starts by hour and type",
       with_percentiles({{"slot", Merge::key}, {"biz_type", Merge::key}})},
      {Report::duration, "duration", "Duration of attempts by hour, type and outcome",
       with_percentiles({{"slot", Merge::key}, {"biz_type", Merge::key}, {"outcome", Merge::key}})},
      {Report::slo,
       "slo",
       "First starts of the last 30 days against the target of their type",
       {{"biz_type", Merge::key},
        {"target_ms", Merge::first},
        {"target_share", Merge::first},
        {"days", Merge::first},
        {"n", Merge::sum},
        {"missed", Merge::sum},
        {"share", Merge::share},
        {"budget_left", Merge::budget},
        {"is_met", Merge::is_met}},
       false},
      {Report::dead,
       "dead",
       "Deaths by UTC day, type and reason",
       {{"slot", Merge::key},
        {"biz_type", Merge::key},
        {"reason", Merge::key},
        {"n", Merge::sum},
        {"first_at", Merge::min},
        {"last_at", Merge::max},
        {"sample_job_id", Merge::last}}},
      {Report::dead_now,
       "dead_now",
       "Jobs that are dead now, by type and reason",
       {{"biz_type", Merge::key},
        {"reason", Merge::key},
        {"n", Merge::sum},
        {"is_exact", Merge::all},
        {"first_at", Merge::min},
        {"last_at", Merge::max},
        {"sample_job_id", Merge::last}},
       false},
      {Report::outcome,
       "outcome",
       "What became of the jobs created on each UTC day",
       {{"created_day", Merge::key},
        {"biz_type", Merge::key},
        {"created", Merge::sum},
        {"done", Merge::sum},
        {"cancelled", Merge::sum},
        {"dead", Merge::sum},
        {"open", Merge::sum}}},
      {Report::delay,
       "delay",
       "How far ahead deadlines were set",
       {{"biz_type", Merge::key}, {"from_ms", Merge::key}, {"to_ms", Merge::first}, {"n", Merge::sum}},
       false},
      {Report::horizon,
       "horizon",
       "Pending jobs by the time they are due",
       {{"slot", Merge::key},
        {"width", Merge::key},
        {"biz_type", Merge::key},
        {"n", Merge::sum},
        {"low", Merge::sum},
        {"high", Merge::sum},
        {"is_exact", Merge::all},
        {"counted_at", Merge::min}},
       true,
       false},
      {Report::backlog,
       "backlog",
       "Jobs whose time has passed, by type",
       {{"biz_type", Merge::key},
        {"due", Merge::sum},
        {"is_exact", Merge::all},
        {"oldest_due_at", Merge::min},
        {"oldest_age_ms", Merge::max},
        {"waits_for", Merge::first}},
       false},
      {Report::audit,
       "audit",
       "Writes through the API by callers with a token",
       {{"at", Merge::key},
        {"actor", Merge::first},
        {"role", Merge::first},
        {"address", Merge::first},
        {"action", Merge::first},
        {"target", Merge::first},
        {"filter", Merge::first},
        {"matched", Merge::first},
        {"changed", Merge::first},
        {"reason", Merge::first}}},
      {Report::recent, "recent", "What happened in the last 10 to 25 minutes, by type", recent_columns(), false},
  };
  return shapes;
}

const ReportShape& report_shape_of(Report report) {
  static const ReportShape of_all = {Report::recent_of_all, "recent_of_all", "", recent_columns(), false};
  static const ReportShape next = {Report::next, "next", "", {{"biz_type", Merge::key}, {"n", Merge::sum}}, false};
  if (report == Report::next) return next;
  const auto found = std::ranges::find(report_shapes(), report, &ReportShape::report);
  return found == report_shapes().end() ? of_all : *found;
}

std::string merged_report(const ReportShape& shape, const std::vector<std::vector<std::string>>& parts, int limit,
                          const std::vector<std::string>& after, const std::string& filter) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  int n = 0;
  bool has_more = false, is_behind = after.empty() || shape.has_range;
  std::vector<std::string> last;
  Row all;
  for (const auto& [key, row] : merged(shape, parts)) {
    std::vector<std::string> keys;
    for (const json& value : key.values) keys.push_back(text_of(value));
    if (shape.report == Report::audit) keys.pop_back();
    if (!is_behind) {  // of a report that comes whole: continues after the last row
      is_behind = keys == after;
      continue;
    }
    if (n == limit) {
      has_more = true;
      break;
    }
    ++n;
    last = std::move(keys);
    out.begin_object();
    for (const ReportColumn& column : shape.columns) out.key(column.name).raw(shown(row, column).dump());
    out.end_object();
    all.add(shape, row);
  }
  out.end_array().key("next_cursor");
  has_more ? out.value(report_cursor(shape, filter, last)) : out.null();
  out.key("columns").begin_array();
  for (const ReportColumn& column : shape.columns) out.value(column.name);
  out.end_array();
  write_totals(out, shape, all);
  return text;
}

std::string report_cursor(const ReportShape& shape, const std::string& filter, const std::vector<std::string>& keys) {
  return base64url(cursor_mark(shape, filter) + json(keys).dump());
}

std::optional<std::vector<std::string>> keys_from_cursor(const ReportShape& shape, const std::string& filter,
                                                         const std::string& cursor) {
  const auto text = base64url_decoded(cursor);
  const std::string mark = cursor_mark(shape, filter);
  if (!text || !text->starts_with(mark)) return {};
  const json keys = json::parse(text->substr(mark.size()), nullptr, false);
  const auto wanted = static_cast<std::size_t>(std::ranges::count(shape.columns, Merge::key, &ReportColumn::merge)) +
                      (shape.report == Report::audit ? 1 : 0);
  if (!keys.is_array() || keys.size() != wanted) return {};
  std::vector<std::string> found;
  for (const json& key : keys) {
    if (!key.is_string()) return {};
    found.push_back(key.get<std::string>());
  }
  return found;
}

}  // namespace tocsin
