#include "postgres/sql_parts.h"

namespace tocsin::sql {

std::string code(ReportEvent event) { return std::to_string(static_cast<int>(event)) + "::smallint"; }

std::string count_end(const std::string& from, const std::string& status, ReportEvent event,
                      const std::string& reason) {
  return "SELECT d.type_id, " + status + "::smallint, count(*), tocsin.day_of(d.gmt_create) * 64, " + code(event) +
         (reason.empty() ? ", NULL::bigint, NULL::text" : ", max(d.job_id), " + reason) + " FROM " + from +
         " d GROUP BY d.type_id, 4, 7";
}

std::string count_move(const std::string& from, const std::string& left, const std::string& events) {
  return kCountInto + "SELECT d.type_id, " + left +
         ", -count(*), NULL::integer, NULL::smallint, NULL::bigint, "
         "NULL::text FROM " +
         from + " d GROUP BY 1, 2 UNION ALL " + events;
}

std::string history_select(const std::string& status, const std::string& started_at, const std::string& attempts,
                           const std::string& node, const std::string& errors) {
  return "SELECT d.job_id, d.action_time, d.fire_at, d.gmt_create, " + started_at +
         ", d.late_from, clock_timestamp(), d.type_id, d.shard, " + status + ", " + attempts +
         ", d.max_attempts, d.biz_id, d.idempotency_key, d.body_hash, " + node + ", d.traceparent, d.attribute, " +
         errors + " FROM d";
}

std::string side_by_side(const std::vector<ArrayColumn>& columns) {
  std::string sql;
  for (const ArrayColumn& column : columns) {
    sql += (sql.empty() ? "(SELECT unnest(" : ", unnest(") + std::string(column.array) + ") AS " + column.name;
  }
  return sql + ") k";
}

}  // namespace tocsin::sql
