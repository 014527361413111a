// RunnableTypes: what the engines of a node see of the type registry.
#pragma once

#include <memory>

#include "delivery/handlers.h"
#include "ports/biz_type.h"

namespace tocsin {

// An engine sees only types that can run on its node: it does not claim jobs of others, and another node may have their
// handler. A removed type is like any other to it: jobs that came in while it was being removed still run.
// Thread: owner only.
class RunnableTypes {
 public:
  explicit RunnableTypes(HandlerRegistry& handlers) : handlers_(handlers) {}

  // Of `all`, removed types included: those that can run here, with the slots of their attempts. The same object as
  // before when nothing changed. Handlers of types that were removed since the last call are told.
  std::shared_ptr<const TypeCatalog> of(const std::shared_ptr<const TypeCatalog>& all);

 private:
  SharedType runnable(const SharedType& type) const;  // null: it cannot run here
  void forget_removed(const TypeCatalog& all);

  HandlerRegistry& handlers_;
  std::shared_ptr<const TypeCatalog> all_ = std::make_shared<const TypeCatalog>();   // of the last call
  std::shared_ptr<const TypeCatalog> last_ = std::make_shared<const TypeCatalog>();  // its result
};

}  // namespace tocsin
