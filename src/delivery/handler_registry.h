// HandlerRegistry: the handler kinds of a node (webhook, sql and so on), and the handler of each type. Owned by
// Node::Impl (node/node_impl.h), which adds and stops the kinds. The engines look up the handler of each claimed job,
// and the REST API checks the settings of new types.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "delivery/handler_kind.h"

namespace tocsin {

// The handler of a type is kept until its handler_json or ttr (length of leases) changes, so settings are not parsed
// for each job. Thread: check, find, can_run, forget and endpoints any; the rest owner only.
class HandlerRegistry {
 public:
  HandlerRegistry();
  ~HandlerRegistry();

  // REQUIRES: before start() and the first check() or find(); no kind of the same name was added.
  void add(std::unique_ptr<HandlerKind> kind);

  // Starts every kind, in the order of add(), until one fails. Call stop() after an Error, too.
  Status start();
  // Stops every kind, in the order of add(). `grace`: for all kinds together.
  void stop(Duration grace, const Clock& clock);
  std::vector<KindMetric> metrics();
  std::vector<EndpointInfo> endpoints() const;  // of every kind, in no order
  void on_capacity_change(const std::function<void()>& changed);

  // nullopt: the handler of the type is valid; otherwise Error invalid with the field at fault, e.g. `handler.kind`.
  std::optional<Error> check(const BizType& type) const;

  // The handler of the type, with its present settings. Null: jobs of the type cannot run here (unknown kind, invalid
  // settings, no function of that name). The pointer is valid as long as the registry. After a change of the type's
  // settings the connection to its former broker is closed when the attempts on it have ended.
  Handler* find(const BizType& type);

  // A node must not claim jobs of types for which this is false.
  bool can_run(const BizType& type) { return find(type) != nullptr; }

  // Call when the type was removed: its connection to a broker is closed when the last attempt on it has ended. A job
  // that was created before still finds a handler, which connects again.
  void forget(const BizType& type);

 private:
  class TypeHandler;

  HandlerKind* kind_of(const BizType& type) const;

  std::vector<std::unique_ptr<HandlerKind>> kinds_;
  std::map<std::string, HandlerKind*> by_name_;
  Mutex mutex_;
  std::unordered_map<TypeId, std::unique_ptr<TypeHandler>> by_type_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin
