#include "postgres/job_conditions.h"

#include "postgres/text.h"

namespace tocsin {

void JobConditions::add(std::string_view condition, std::string_view literal) {
  const auto mark = condition.find('?');
  sql_.append(" AND ").append(condition.substr(0, mark));
  if (mark != std::string_view::npos) sql_.append(literal).append(condition.substr(mark + 1));
}

void JobConditions::add_biz_id(const std::optional<std::string>& biz_id) {
  if (!biz_id) return;
  add_text("j.biz_id = ?", *biz_id);
  if (is_live_) add("j.shard = ?", std::to_string(shard_of(*biz_id, shards_)));
}

void JobConditions::add_time(std::string_view condition, WallTime time) { add_text(condition, to_pg(time)); }

}  // namespace tocsin
