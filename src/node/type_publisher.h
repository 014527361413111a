// TypePublisher: reads the types of the control database and gives them to the parts of this node: all types to the
// REST handlers (types()) and metrics, the types whose handlers can run here to the permits and the engines. One per
// node. refresh() is called when the node starts, by the housekeeping thread of the control database every few seconds
// and after a notification, and by request threads after they wrote a type or met a name that types() lacks. Thread:
// any.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "core/registry_reader.h"
#include "delivery/handler_registry.h"
#include "delivery/runnable_types.h"
#include "metrics/metrics.h"
#include "node/database.h"
#include "node/permits.h"

namespace tocsin {

// The databases of this node, the control database first.
using Databases = std::vector<std::unique_ptr<Database>>;

class TypePublisher {
 public:
  // REQUIRES: all arguments outlive it.
  TypePublisher(Metrics& metrics, HandlerRegistry& handlers, const Databases& databases, Permits& permits);

  // Reads what has changed in the registry and publishes the types. Publishes them without a change, too, because a
  // handler may have become able or unable to run here. `registry`: of the control database, on the caller's session.
  // Error: of the read; nothing is published and types() stays.
  Status refresh(TypeStore& registry);
  // As read last, removed types included; empty before the first read.
  std::shared_ptr<const TypeCatalog> types() const { return reader_.latest(); }

 private:
  void publish(const std::shared_ptr<const TypeCatalog>& all) TOCSIN_REQUIRES(mutex_);

  Metrics& metrics_;
  const Databases& databases_;
  Permits& permits_;
  RegistryReader reader_;
  Mutex mutex_;  // held while types are published, so that no older ones follow newer ones
  RunnableTypes runnable_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin
