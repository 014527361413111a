// RegistryReader: keeps a copy of the type registry and reads only what changed since.
#pragma once

#include <cstdint>
#include <memory>

#include "base/latest.h"
#include "base/mutex.h"
#include "ports/biz_type.h"
#include "ports/report_store.h"

namespace tocsin {

// Thread: any; each caller brings its own store.
class RegistryReader {
 public:
  RegistryReader() : latest_(std::make_shared<const TypeCatalog>()) {}

  // Afterwards latest() has every change that was committed before the call. Costs what has changed; the whole registry
  // is read when the changes do not explain its version. Error: of the store; latest() stays.
  Status refresh(TypeStore& registry);
  // Removed types included. The same object as long as nothing changes; empty before the first read.
  std::shared_ptr<const TypeCatalog> latest() const { return latest_.get(); }

 private:
  Latest<TypeCatalog> latest_;
  Mutex mutex_;
  std::uint64_t begun_ TOCSIN_GUARDED_BY(mutex_) = 0;  // number of reads begun
  std::uint64_t kept_ TOCSIN_GUARDED_BY(mutex_) = 0;   // the number of the read that latest_ is from
};

}  // namespace tocsin
