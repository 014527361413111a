#include "ports/biz_type.h"
#include "ports/permit_store.h"

namespace tocsin {

TypeCatalog::TypeCatalog(std::vector<BizType> all) {
  types.reserve(all.size());
  for (BizType& type : all) {
    auto shared = std::make_shared<const BizType>(std::move(type));
    by_id.emplace(shared->type_id, shared);
    if (shared->is_removed) {
      removed.emplace(shared->name, shared);
      continue;
    }
    by_name.emplace(shared->name, shared);
    if (!shared->is_instant() && !shared->is_pull() && !shared->starts_in_database())
      shortest_ttr = std::min(shortest_ttr, shared->ttr);
    types.push_back(std::move(shared));
  }
}

const BizType* TypeCatalog::find(const std::string& name) const {
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second.get();
}

const BizType* TypeCatalog::find_any(const std::string& name) const {
  if (const BizType* type = find(name)) return type;
  const auto it = removed.find(name);
  return it == removed.end() ? nullptr : it->second.get();
}

const BizType* TypeCatalog::find(TypeId id) const {
  auto it = by_id.find(id);
  return it == by_id.end() ? nullptr : it->second.get();
}

int permits_of(const BizType& type, Limit limit) {
  if (limit != Limit::running) return rate_of(type, limit) > 0 ? kWholeRate : 0;
  return type.is_instant() ? 0 : type.max_running.value_or(0);
}

double rate_of(const BizType& type, Limit limit) {
  if (limit == Limit::rate) return type.rate_per_s.value_or(0);
  return limit == Limit::catch_up ? type.catch_up_rate_per_s.value_or(0) : 0;
}

}  // namespace tocsin
