#include "node/type_publisher.h"

#include <utility>

namespace tocsin {

TypePublisher::TypePublisher(Metrics& metrics, HandlerRegistry& handlers, const Databases& databases, Permits& permits)
    : metrics_(metrics),
      handlers_(handlers),
      databases_(databases),
      permits_(permits),
      catalog_(std::make_shared<const TypeCatalog>()) {}

Status TypePublisher::refresh(TypeStore& registry) {
  // Drawn before the read: an older picture must not replace a newer one, or a pause that was acknowledged would end.
  const std::uint64_t read = ++reads_;
  auto version = registry.version();
  if (!version) return version.error();
  {
    MutexLock lock(mutex_);
    if (*version == version_) {  // what can run here may have changed
      std::vector<BizType> types;
      for (const auto& type : catalog_.get()->types) types.push_back(*type);
      publish_to_engines(std::move(types));
      return Unit{};
    }
  }
  auto types = registry.list(TypeStore::Removed::included);
  if (!types) return types.error();
  MutexLock lock(mutex_);
  if (read < published_) return Unit{};
  published_ = read;
  version_ = std::move(*version);
  publish(std::move(*types));
  return Unit{};
}

void TypePublisher::publish(std::vector<BizType> types) {
  auto all = std::make_shared<const TypeCatalog>(types);
  for (const auto& before : catalog_.get()->types) {
    const auto now = all->by_id.find(before->type_id);
    if (!before->is_removed && (now == all->by_id.end() || now->second->is_removed)) handlers_.forget(*before);
  }
  catalog_.set(all);
  metrics_.set_catalog(all);
  publish_to_engines(std::move(types));
}

void TypePublisher::publish_to_engines(std::vector<BizType> types) {
  // The engine sees only types that can run here: the jobs of others are not claimed, and another node may have their
  // handler. Removed types still run what came in under them.
  std::erase_if(types, [this](const BizType& type) { return !handlers_.can_run(type); });
  for (BizType& type : types) {
    type.is_removed = false;
    type.pool = handlers_.find(type)->pool();
  }
  const auto runnable = std::make_shared<const TypeCatalog>(std::move(types));
  permits_.set_catalog(runnable);
  for (const auto& database : databases_) database->engine().engine().set_catalog(runnable);
}

}  // namespace tocsin
