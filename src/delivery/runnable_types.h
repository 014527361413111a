// RunnableTypes: the types that the engines of a node may claim.
#pragma once

#include <memory>

#include "delivery/handlers.h"
#include "ports/biz_type.h"

namespace tocsin {

// An engine sees only types that can run on its node: it does not claim jobs of others, and another node may have their
// handler. A removed type is given without its mark is_removed: jobs that came in while it was being removed
// still run. Thread: one caller at a time.
class RunnableTypes {
 public:
  explicit RunnableTypes(HandlerRegistry& handlers) : handlers_(handlers) {}

  // The types of `all` (removed ones included) that have a handler here, with its start pool (Handler::pool). The same
  // object as before when nothing changed. Handlers of types that were removed since the last call close their
  // connections (HandlerRegistry::forget).
  std::shared_ptr<const TypeCatalog> of(const std::shared_ptr<const TypeCatalog>& all);

 private:
  SharedType runnable(const SharedType& type) const;  // null: it cannot run here
  void forget_removed(const TypeCatalog& all);

  HandlerRegistry& handlers_;
  std::shared_ptr<const TypeCatalog> all_ = std::make_shared<const TypeCatalog>();   // of the last call
  std::shared_ptr<const TypeCatalog> last_ = std::make_shared<const TypeCatalog>();  // its result
};

}  // namespace tocsin
