// PgReportStore::report(): the reports, with histograms where the views have percentiles.
#include "base/names.h"
#include "postgres/pg_report_store.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

// The files of sql/, in the order of Report.
constexpr const char* kReportFiles[] = {"report_hour",   "report_day",           "report_lateness", "report_duration",
                                        "report_slo",    "report_dead",          "report_dead_now", "report_outcome",
                                        "report_delay",  "report_horizon",       "report_backlog",  "report_audit",
                                        "report_recent", "report_recent_of_all", "report_next"};

bool is_time_zone(pqxx::transaction_base& tx, const std::string& name) {
  try {
    tx.exec_params1("SELECT tocsin.require_time_zone($1::text)", name);
    return true;
  } catch (const pqxx::sql_error& error) {
    if (error.sqlstate() != "22023") throw;
    return false;
  }
}

}  // namespace

Result<std::vector<std::string>> PgReportStore::report(const ReportQuery& query) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  const std::string from = query.from ? to_pg(*query.from) : "", to = query.to ? to_pg(*query.to) : "";
  const auto after = [&](std::size_t i) { return i < query.after.size() ? query.after[i].c_str() : nullptr; };
  bool is_zone_unknown = false;
  auto rows = session_.read<std::vector<std::string>>([&](pqxx::nontransaction& tx) -> std::vector<std::string> {
    is_zone_unknown = !query.tz.empty() && !is_time_zone(tx, query.tz);
    if (is_zone_unknown) return {};
    const bool is_of_zone = query.report == Report::day && !query.tz.empty();
    const auto& statement = session_.prepared(is_of_zone ? "report_day_of_zone" : name_of(kReportFiles, query.report));
    const std::string biz_type = query.biz_type.value_or("");
    const char* const of_type = query.biz_type ? biz_type.c_str() : nullptr;
    const char *const begin = text_or_null(from), *const end = text_or_null(to);
    const auto ask = [&](const auto&... more) {
      return exec(tx, statement, of_type, begin, end, query.limit, after(0), after(1), after(2), more...);
    };
    if (is_of_zone) return column_of<std::string>(ask(query.tz, query.is_only_database));
    if (query.report == Report::horizon) return column_of<std::string>(ask(text_or_null(query.width)));
    return column_of<std::string>(ask());
  });
  if (is_zone_unknown) return Error{ErrorCode::invalid, "There is no such time zone.", "tz"};
  return rows;
}

}  // namespace tocsin
