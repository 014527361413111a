#include "core/registry_reader.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace tocsin {
namespace {

std::shared_ptr<const TypeCatalog> merge(const TypeCatalog& known, std::vector<BizType> changed) {
  std::unordered_map<TypeId, SharedType> by_id = known.by_id;
  for (BizType& type : changed) {
    const TypeId id = type.type_id;
    by_id[id] = std::make_shared<const BizType>(std::move(type));
  }
  std::vector<SharedType> all;
  all.reserve(by_id.size());
  for (auto& [id, type] : by_id) all.push_back(std::move(type));
  return std::make_shared<const TypeCatalog>(all);
}

}  // namespace

Status RegistryReader::refresh(TypeStore& registry) {
  std::uint64_t read = 0;
  {
    MutexLock lock(mutex_);
    read = ++begun_;
  }
  const auto known = latest();
  auto changes = registry.changed_since(known->newest);
  if (!changes) return changes.error();
  auto next = changes->version == known->version ? known : merge(*known, std::move(changes->types));
  if (next->version != changes->version) {
    auto types = registry.list(TypeStore::Removed::included);
    if (!types) return types.error();
    next = std::make_shared<const TypeCatalog>(std::move(*types));
  }
  MutexLock lock(mutex_);
  // A read that began earlier must not replace a later one: a pause that was acknowledged would end.
  if (read < kept_) return Unit{};
  kept_ = read;
  latest_.set(std::move(next));
  return Unit{};
}

}  // namespace tocsin
