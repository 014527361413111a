#include "delivery/runnable_types.h"

#include <utility>
#include <vector>

namespace tocsin {

std::shared_ptr<const TypeCatalog> RunnableTypes::of(const std::shared_ptr<const TypeCatalog>& all) {
  if (all != all_) forget_removed(*all);
  std::unordered_map<TypeId, Known> known;
  std::vector<SharedType> types;
  bool is_same = all->by_id.size() == known_.size();
  for (const auto& [id, type] : all->by_id) {
    const auto before = known_.find(id);
    const Known* const last = before == known_.end() ? nullptr : &before->second;
    Known now{type, runnable(type, last)};
    is_same = is_same && last && last->runnable == now.runnable;
    if (now.runnable) types.push_back(now.runnable);
    known.emplace(id, std::move(now));
  }
  all_ = all;
  known_ = std::move(known);
  if (!is_same) last_ = std::make_shared<const TypeCatalog>(types);
  return last_;
}

SharedType RunnableTypes::runnable(const SharedType& type, const Known* known) {
  const Handler* const handler = handlers_.find(*type);
  if (!handler) return nullptr;
  auto pool = handler->pool();
  if (known && known->registered == type && known->runnable && known->runnable->pool == pool) return known->runnable;
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
