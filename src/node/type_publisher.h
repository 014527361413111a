// TypePublisher: reads the type registry and shows it to the API, the metrics, the permits and the engines of this
// node. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/latest.h"
#include "base/mutex.h"
#include "delivery/handlers.h"
#include "metrics/metrics.h"
#include "node/database.h"
#include "node/permits.h"

namespace tocsin {

// The control database first; they outlive what refers to them.
using Databases = std::vector<std::unique_ptr<Database>>;

class TypePublisher {
 public:
  // All of them outlive it.
  TypePublisher(Metrics& metrics, HandlerRegistry& handlers, const Databases& databases, Permits& permits);

  // Reads the registry and publishes it, unless a later read was published before.
  Status refresh(TypeStore& registry);
  // As published last; empty before the first read.
  std::shared_ptr<const TypeCatalog> types() const { return catalog_.get(); }

 private:
  void publish(std::vector<BizType> types);
  void publish_to_engines(std::vector<BizType> types);

  Metrics& metrics_;
  HandlerRegistry& handlers_;
  const Databases& databases_;
  Permits& permits_;
  Latest<TypeCatalog> catalog_;
  std::atomic<std::uint64_t> reads_{0};
  Mutex mutex_;                                            // held while types are published, so that they come in order
  std::uint64_t published_ TOCSIN_GUARDED_BY(mutex_) = 0;  // the number of the read that was published last
  std::string version_ TOCSIN_GUARDED_BY(mutex_);          // of what is published
};

}  // namespace tocsin
