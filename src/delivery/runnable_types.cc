#include "delivery/runnable_types.h"

#include <utility>
#include <vector>

namespace tocsin {
namespace {

SharedType type_of(const TypeCatalog& catalog, TypeId id) {
  const auto type = catalog.by_id.find(id);
  return type == catalog.by_id.end() ? nullptr : type->second;
}

}  // namespace

std::shared_ptr<const TypeCatalog> RunnableTypes::of(const std::shared_ptr<const TypeCatalog>& all) {
  if (all != all_) forget_removed(*all);
  std::vector<SharedType> types;
  bool is_same = true;
  for (const auto& [id, type] : all->by_id) {
    SharedType now = runnable(type);
    if (!now) continue;
    is_same = is_same && now == type_of(*last_, id);
    types.push_back(std::move(now));
  }
  all_ = all;
  if (!is_same || types.size() != last_->by_id.size()) last_ = std::make_shared<const TypeCatalog>(types);
  return last_;
}

SharedType RunnableTypes::runnable(const SharedType& type) const {
  const Handler* const handler = handlers_.find(*type);
  if (!handler) return nullptr;
  auto pool = handler->pool();
  const SharedType before = type_of(*last_, type->type_id);
  if (before && before->pool == pool && type_of(*all_, type->type_id) == type) return before;
  BizType copy = *type;
  copy.is_removed = false;
  copy.pool = std::move(pool);
  return std::make_shared<const BizType>(std::move(copy));
}

void RunnableTypes::forget_removed(const TypeCatalog& all) {
  for (const auto& before : all_->types) {
    const BizType* const now = all.find(before->type_id);
    if (!now || now->is_removed) handlers_.forget(*before);
  }
}

}  // namespace tocsin
