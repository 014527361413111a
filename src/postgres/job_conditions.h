// JobConditions: what lists and bulk operations ask of a row j of a table of jobs, as SQL for the statements that have
// {{conditions}}. The values are literals in it and not parameters, because the conditions that there are decide which
// index fits. Thread: owner only.
#pragma once

#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

class JobConditions {
 public:
  // Of the live table (`is_live`) or of history. `shards`: of the installation. `tx` must outlive the object.
  JobConditions(pqxx::transaction_base& tx, bool is_live, int shards) : tx_(tx), is_live_(is_live), shards_(shards) {}

  // `?` in the condition stands for the literal.
  void add(std::string_view condition, std::string_view literal = {});
  void add_text(std::string_view condition, const std::string& text) { add(condition, tx_.quote(text)); }
  void add_biz_id(const std::optional<std::string>& biz_id);
  // What a JobFilter and a BulkFilter have in common: biz_id, type_id, from, to.
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
