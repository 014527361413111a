#include "node/type_publisher.h"

namespace tocsin {

TypePublisher::TypePublisher(Metrics& metrics, HandlerRegistry& handlers, const DatabaseMap& map, Permits& permits)
    : metrics_(metrics), map_(map), permits_(permits), runnable_(handlers) {}

Status TypePublisher::refresh(TypeStore& registry) {
  if (auto done = reader_.refresh(registry); !done) return done;
  MutexLock lock(mutex_);
  publish(reader_.latest());
  return Unit{};
}

// On failure the next round of housekeeping reads it.
Status TypePublisher::reload(Stores& stores) {
  if (stores.database_id == 0) return refresh(stores.types);
  map_.control().reload_types();
  return Unit{};
}

Status TypePublisher::mirror_to(Stores& stores) {
  return stores.database_id == 0 ? Unit{} : map_.at(stores.database_id)->mirror(stores.types, *types());
}

void TypePublisher::mirror_to_all(std::function<void()> done) {
  // Destroyed, and so `done` called, when the last database that was asked has finished.
  struct AtTheEnd {
    explicit AtTheEnd(std::function<void()> what) : call(std::move(what)) {}
    ~AtTheEnd() { call(); }
    std::function<void()> call;
  };
  const auto last = std::make_shared<AtTheEnd>(std::move(done));
  for (const auto& database : map_.all()) {
    if (database->is_control() || !database->is_answering()) continue;
    database->post([this, last](Stores& stores) { static_cast<void>(mirror_to(stores)); });
  }
}

void TypePublisher::publish(const std::shared_ptr<const TypeCatalog>& all) {
  metrics_.set_catalog(all);
  const auto runnable = runnable_.of(all);
  permits_.set_catalog(runnable);
  for (const auto& database : map_.all()) database->engine().engine().set_catalog(runnable);
}

}  // namespace tocsin
