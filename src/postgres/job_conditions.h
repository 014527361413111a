// JobConditions: the filter of a list or a bulk operation as an SQL condition on rows `j` of a table of jobs. It
// replaces {{conditions}} in statements of src/postgres/sql. Values become literals, not parameters, because the
// planner chooses an index by the conditions that are present. Used by PgReportStore and PgBulkStore. Thread: owner
// only (the session's).
#pragma once

#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

class JobConditions {
 public:
  // `is_live`: for the live table, otherwise for history. `shards`: the installation's shard count. `tx` quotes texts,
  // and must outlive the object.
  JobConditions(pqxx::transaction_base& tx, bool is_live, int shards) : tx_(tx), is_live_(is_live), shards_(shards) {}

  // Adds a condition with AND. `literal`: SQL that replaces the `?` in the condition.
  void add(std::string_view condition, std::string_view literal = {});
  void add_text(std::string_view condition, const std::string& text) { add(condition, tx_.quote(text)); }
  void add_biz_id(const std::optional<std::string>& biz_id);
  // Adds the fields that a JobFilter and a BulkFilter both have: biz_id, type_id, from, to.
  template <class Filter>
  void add_common(const Filter& filter) {
    add_biz_id(filter.biz_id);
    if (filter.type_id) add("j.type_id = ?", std::to_string(*filter.type_id));
    if (filter.from) add_time("j.action_time >= ?::timestamptz", *filter.from);
    if (filter.to) add_time("j.action_time < ?::timestamptz", *filter.to);
  }

  const std::string& sql() const { return sql_; }

 private:
  void add_time(std::string_view condition, WallTime time);

  pqxx::transaction_base& tx_;
  const bool is_live_;
  const int shards_;
  std::string sql_ = "true";
};

}  // namespace tocsin
