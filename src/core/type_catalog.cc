#include "tocsin/biz_type.h"

namespace tocsin {

TypeCatalog::TypeCatalog(std::vector<BizType> all) {
  types.reserve(all.size());
  for (BizType& type : all) {
    auto shared = std::make_shared<const BizType>(std::move(type));
    by_id.emplace(shared->type_id, shared);
    if (shared->is_removed) continue;
    by_name.emplace(shared->name, shared);
    types.push_back(std::move(shared));
  }
}

const BizType* TypeCatalog::find(const std::string& name) const {
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second.get();
}

const BizType* TypeCatalog::find(TypeId id) const {
  auto it = by_id.find(id);
  return it == by_id.end() ? nullptr : it->second.get();
}

}  // namespace tocsin
