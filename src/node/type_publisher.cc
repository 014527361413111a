#include "node/type_publisher.h"

namespace tocsin {

TypePublisher::TypePublisher(Metrics& metrics, HandlerRegistry& handlers, const Databases& databases, Permits& permits)
    : metrics_(metrics), databases_(databases), permits_(permits), runnable_(handlers) {}

Status TypePublisher::refresh(TypeStore& registry) {
  if (auto done = reader_.refresh(registry); !done) return done;
  MutexLock lock(mutex_);
  publish(reader_.latest());
  return Unit{};
}

void TypePublisher::publish(const std::shared_ptr<const TypeCatalog>& all) {
  metrics_.set_catalog(all);
  const auto runnable = runnable_.of(all);
  permits_.set_catalog(runnable);
  for (const auto& database : databases_) database->engine().engine().set_catalog(runnable);
}

}  // namespace tocsin
