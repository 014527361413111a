// TypePublisher: reads the types from the control database and gives them to the parts of this node. REST handlers
// (types()), metrics and the other databases get all types; permits and engines get the types whose handlers can run on
// this node. Owned by the node (node_impl.h), one per node.
//
// Callers of refresh(): the housekeeping thread of the control database, at the start, every few seconds and after a
// notification; request threads, after they wrote a type or met a name that types() lacks. Thread: any.
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

  // Reads the changes of the registry (the stored types) and publishes all types. Publishes also without a change,
  // because a handler may have become able or unable to run here. `registry`: of the control database, on the caller's
  // session. Error: of the read; nothing is published, and types() stays as it was.
  Status refresh(TypeStore& registry);
  // refresh() for a thread of any database. On a thread of the control database it reads at once; on any other it only
  // requests the read of the housekeeping thread, and succeeds.
  Status reload(Stores& stores);
  // Updates the mirror (the copy of the registry) in the database of `stores`. Does nothing in the control database.
  Status mirror_to(Stores& stores);
  // Updates the mirror in every database that answers, then calls `done` once, on any thread, the caller's included.
  // Databases that do not answer and failed updates are left to housekeeping.
  void mirror_to_all(std::function<void()> done);
  // The types as read last, removed ones included; empty before the first read.
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
