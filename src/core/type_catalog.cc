#include <algorithm>
#include <chrono>

#include "ports/biz_type.h"
#include "ports/permit_store.h"

namespace tocsin {

namespace {

std::vector<SharedType> shared(std::vector<BizType> all) {
  std::vector<SharedType> types;
  types.reserve(all.size());
  for (BizType& type : all) types.push_back(std::make_shared<const BizType>(std::move(type)));
  return types;
}

std::int64_t microseconds_of(WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

}  // namespace

TypeCatalog::TypeCatalog(std::vector<BizType> all) : TypeCatalog(shared(std::move(all))) {}

TypeCatalog::TypeCatalog(const std::vector<SharedType>& all) {
  constexpr std::uint64_t kModulus = std::uint64_t{1} << 62;
  std::uint64_t sum = 0;
  types.reserve(all.size());
  for (const SharedType& type : all) {
    by_id.emplace(type->type_id, type);
    sum += static_cast<std::uint64_t>(microseconds_of(type->gmt_modified));
    newest = std::max(newest, type->gmt_modified);
    if (type->is_removed) {
      removed.emplace(type->name, type);
      continue;
    }
    by_name.emplace(type->name, type);
    if (!type->is_instant() && !type->is_pull() && !type->starts_in_database())
      shortest_ttr = std::min(shortest_ttr, type->ttr);
    types.push_back(type);
  }
  std::ranges::sort(types, {}, [](const SharedType& type) -> const std::string& { return type->name; });
  version = {std::ssize(all), static_cast<std::int64_t>(sum % kModulus)};
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
