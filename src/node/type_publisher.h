// TypePublisher: reads the types of the control database and gives them to the parts of this node: all types to the
// REST handlers (types()), metrics and other databases, those whose handlers can run here to permits and engines. One
// per node. refresh() is called when the node starts, by the housekeeping thread of the control database every few
// seconds and after a notification, and by request threads after they wrote a type or met a name that types() lacks.
// Thread: any.
#pragma once

#include <functional>
#include <memory>

#include "base/mutex.h"
#include "core/registry_reader.h"
#include "delivery/handler_registry.h"
#include "delivery/runnable_types.h"
#include "metrics/metrics.h"
#include "node/database_map.h"
#include "node/permits.h"

namespace tocsin {

class TypePublisher {
 public:
  // REQUIRES: all arguments outlive it.
  TypePublisher(Metrics& metrics, HandlerRegistry& handlers, const DatabaseMap& map, Permits& permits);

  // Reads what has changed in the registry and publishes the types. Publishes them without a change, too, because a
  // handler may have become able or unable to run here. `registry`: of the control database, on the caller's session.
  // Error: of the read; nothing is published and types() stays.
  Status refresh(TypeStore& registry);
  // The same on a thread of any database: on that of another one than the control database it only requests the read,
  // and succeeds.
  Status reload(Stores& stores);
  // Updates the mirror (the copy of the registry) in the database of `stores`; the control database needs none.
  Status mirror_to(Stores& stores);
  // Updates the mirror in every database that answers, then calls `done` once, on any thread, the caller's included.
  // Housekeeping updates the others, and repeats what fails.
  void mirror_to_all(std::function<void()> done);
  // As read last, removed types included; empty before the first read.
  std::shared_ptr<const TypeCatalog> types() const { return reader_.latest(); }

 private:
  void publish(const std::shared_ptr<const TypeCatalog>& all) TOCSIN_REQUIRES(mutex_);

  Metrics& metrics_;
  const DatabaseMap& map_;
  Permits& permits_;
  RegistryReader reader_;
  Mutex mutex_;  // held while types are published, so that no older ones follow newer ones
  RunnableTypes runnable_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin
