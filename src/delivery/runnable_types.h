// RunnableTypes: selects the types whose jobs this node can run, for its engines (which fire the jobs) and its permits
// (parts of a type's limits, lent to nodes). TypePublisher (node/type_publisher.h) owns it, and calls it after every
// read of the type registry.
#pragma once

#include <memory>

#include "delivery/handler_registry.h"
#include "ports/biz_type.h"

namespace tocsin {

// An engine claims only jobs of the types that it is given; other nodes may have handlers for the other types. A
// removed type is given without its mark is_removed, because a shard that moved during the removal may have brought a
// job of the type. Thread: one caller at a time.
class RunnableTypes {
 public:
  explicit RunnableTypes(HandlerRegistry& handlers) : handlers_(handlers) {}

  // Returns the types of `all` (removed ones included) that have a handler here, each with the start pool of its
  // handler. Returns the same object as before if nothing changed. The result can change although `all` does not,
  // because a handler may have become able to run. For types that were removed since the last call it calls
  // HandlerRegistry::forget().
  std::shared_ptr<const TypeCatalog> of(const std::shared_ptr<const TypeCatalog>& all);

 private:
  SharedType runnable(const SharedType& type) const;  // null: it cannot run here
  void forget_removed(const TypeCatalog& all);

  HandlerRegistry& handlers_;
  std::shared_ptr<const TypeCatalog> all_ = std::make_shared<const TypeCatalog>();   // of the last call
  std::shared_ptr<const TypeCatalog> last_ = std::make_shared<const TypeCatalog>();  // its result
};

}  // namespace tocsin
