// TypePublisher: reads the type registry and publishes it to the API, metrics, permits and engines of this node.
// Permits and engines get only types whose handlers can run here. Thread: any.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "core/registry_reader.h"
#include "delivery/handlers.h"
#include "delivery/runnable_types.h"
#include "metrics/metrics.h"
#include "node/database.h"
#include "node/permits.h"

namespace tocsin {

// Of this node, the control database first.
using Databases = std::vector<std::unique_ptr<Database>>;

class TypePublisher {
 public:
  // REQUIRES: all arguments outlive it.
  TypePublisher(Metrics& metrics, HandlerRegistry& handlers, const Databases& databases, Permits& permits);

  // Reads the registry and publishes the types, even if none has changed: whether a handler can run here may have.
  Status refresh(TypeStore& registry);
  // As published last, removed types included; empty before the first read.
  std::shared_ptr<const TypeCatalog> types() const { return reader_.latest(); }

 private:
  void publish(const std::shared_ptr<const TypeCatalog>& all) TOCSIN_REQUIRES(mutex_);

  Metrics& metrics_;
  const Databases& databases_;
  Permits& permits_;
  RegistryReader reader_;
  Mutex mutex_;  // held while types are published, so that they come in order
  RunnableTypes runnable_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin
