// GET /v1/reports/...: the report views of all databases, added up.
#include "api/fan_out.h"
#include "api/page.h"
#include "api/query.h"
#include "api/report_rows.h"
#include "api/resources.h"
#include "api/time_text.h"

namespace tocsin {
namespace {

using Rows = std::vector<std::string>;

// What a cursor belongs to: the parameters that choose rows.
std::string filter_of(const Call& call) {
  std::string filter;
  for (const char* const name : {"type", "from", "to", "tz", "width"})
    if (const auto value = call.parameter(name)) filter += std::string(name) + '=' + *value + '\n';
  return filter;
}

std::optional<Problem> read_report_query(const Call& call, const ReportShape& shape, ReportQuery& query) {
  query.report = shape.report;
  if (auto problem = read_time(call, "from", query.from)) return problem;
  if (auto problem = read_time(call, "to", query.to)) return problem;
  if (query.from && query.to && *query.to < *query.from) return Problem{400, "Must not lie before from.", "to"};
  if (const auto text = call.parameter("tz")) {
    if (text->empty() || text->size() > 64) return Problem{422, "There is no such time zone.", "tz"};
    query.tz = *text == "UTC" ? "" : *text;
  }
  if (const auto text = call.parameter("width")) {
    if (*text != "minute" && *text != "hour" && *text != "day")
      return Problem{400, "Must be minute, hour or day.", "width"};
    query.width = *text;
  }
  if (const auto text = call.parameter("cursor")) {
    const auto keys = keys_from_cursor(shape, filter_of(call), *text);
    if (!keys || (shape.has_range && !time_from_text(keys->front())))
      return Problem{400, "Must be a next_cursor of this report, with the same filters.", "cursor"};
    query.after = *keys;
  }
  return read_limit(call, query.limit);
}

// Deaths and outcomes are kept by UTC day, the rest by hour: only days can be those of another zone.
std::string zone_of_rows(const ReportQuery& query) {
  return query.report == Report::day && !query.tz.empty() ? query.tz : "UTC";
}

void report(ApiContext& context, const CallPtr& call, const ReportShape& shape, const ReportQuery& query) {
  ReportQuery one_more = query;
  ++one_more.limit;
  one_more.is_only_database = context.backend.database_ids().size() == 1;
  fan_out<Rows>(
      context, call, context.backend.database_ids(),
      [one_more](DatabaseId, Stores& stores) { return stores.reports.report(one_more); },
      [&context, call, &shape, query](const std::vector<DatabaseAnswer<Rows>>& answers) {
        for (const auto& [database_id, rows] : answers)
          if (!rows && rows.error().code == ErrorCode::invalid)
            return call->refuse({422, rows.error().message, rows.error().field});
        if (refused_by_all(context, call, answers)) return;
        std::vector<Rows> parts;
        for (const auto& [database_id, rows] : answers)
          if (rows) parts.push_back(*rows);
        std::string text = merged_report(shape, parts, query.limit, query.after, filter_of(*call));
        std::string missing;
        JsonWriter names(missing);
        write_missing(names, context.backend, answers);
        if (!missing.empty()) text += "," + missing;
        if (call->parameter("tz")) append_json_string(text += R"(,"tz":)", zone_of_rows(query));
        call->reply(200, text + "}");
      },
      0, RequestQueue::slow_reads);
}

void report(ApiContext& context, const CallPtr& call, const ReportShape& shape) {
  ReportQuery query;
  if (const auto problem = read_report_query(*call, shape, query)) return call->refuse(*problem);
  const auto name = call->parameter("type");
  if (!name) return report(context, call, shape, query);
  context.with_any_type(call, *name, "type", [&context, call, &shape, query](const BizType& type) mutable {
    query.biz_type = type.name;
    report(context, call, shape, query);
  });
}

std::vector<Parameter> parameters_of(const ReportShape& shape) {
  const std::string time = R"({"type":"string","format":"date-time"})";
  const char* const zone =
      shape.report == Report::day
          ? "Days of this time zone; without from, the last 31"
          : "A time zone that exists; ignored: the rows are hours or days of UTC, and the answer has \"tz\":\"UTC\"";
  std::vector<Parameter> own = {{"type", R"({"type":"string"})", "Only of this type"},
                                {"from", time, "Not before"},
                                {"to", time, "Before"},
                                {"tz", R"({"type":"string","default":"UTC","examples":["Europe/Berlin"]})", zone}};
  if (shape.report == Report::horizon)
    own.push_back({"width", R"({"type":"string","enum":["minute","hour","day"]})", "Only slots of this width"});
  return with_page_parameters("Rows", std::move(own));
}

}  // namespace

std::vector<Route> report_routes(ApiContext& context) {
  std::vector<Route> routes;
  for (const ReportShape& shape : report_shapes()) {
    std::string id = shape.name;
    id[0] = static_cast<char>(id[0] - 'a' + 'A');
    routes.push_back({.method = "GET",
                      .path = std::string("/v1/reports/") + shape.name,
                      .access = Access::read,
                      .operation_id = "report" + id,
                      .tag = "Reports",
                      .summary = shape.summary,
                      .query = parameters_of(shape),
                      .replies = {{200, "ReportPage"}},
                      .errors = {422, 429, 503},
                      .handler = [&context, &shape](const CallPtr& call) { report(context, call, shape); }});
  }
  return routes;
}

}  // namespace tocsin
