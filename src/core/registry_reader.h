// RegistryReader: this node's copy of the type registry (the table of all types) in the control database. TypePublisher
// (node/type_publisher.h) owns one, and refreshes it every few seconds and after changes.
#pragma once

#include <cstdint>
#include <memory>

#include "base/latest.h"
#include "base/mutex.h"
#include "ports/biz_type.h"
#include "ports/type_store.h"

namespace tocsin {

// Thread: any; each caller passes a store of its own thread.
class RegistryReader {
 public:
  RegistryReader() : latest_(std::make_shared<const TypeCatalog>()) {}

  // Afterwards latest() has every change that was committed before the call. Reads the types that have changed since
  // latest(). If these changes do not lead to the registry's version, reads all types. Error: from the store; latest()
  // keeps its value.
  Status refresh(TypeStore& registry);
  // The newest copy, removed types included. It is replaced only by a change; before the first refresh() it is empty.
  std::shared_ptr<const TypeCatalog> latest() const { return latest_.get(); }

 private:
  Latest<TypeCatalog> latest_;
  Mutex mutex_;
  std::uint64_t begun_ TOCSIN_GUARDED_BY(mutex_) = 0;  // reads begun so far; gives each its number
  std::uint64_t kept_ TOCSIN_GUARDED_BY(mutex_) = 0;   // number of the read in latest_; no earlier one replaces it
};

}  // namespace tocsin
