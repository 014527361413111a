// HandlerKind: the interface of one method of running jobs (webhook, sql, cpp, pull, noop, brokers). A node has one
// object of each kind, in its HandlerRegistry. A new kind has its files in this folder and is added in make_handlers()
// of node/node_parts.cc; a broker has its files in src/<broker> and is added in kinds() of entry/broker_kinds.cc.
// docs/contributing.md names the other files to change.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/endpoint_info.h"
#include "ports/biz_type.h"
#include "tocsin/error.h"
#include "tocsin/handler.h"

namespace tocsin {

// A metric of a kind, shown with the node's metrics.
struct KindMetric {
  std::string name;  // a Prometheus name; counters end in _total
  std::string help;
  bool is_counter = false;
  std::function<double()> read;  // valid while the kind lives. Thread: any
};

// Thread: start, stop, destructor, metrics and on_capacity_change owner only; the rest any.
class HandlerKind {
 public:
  virtual ~HandlerKind() = default;

  virtual std::string name() const = 0;  // as in `handler.kind`

  // Checks the settings of a type (BizType::handler_json) on this node. nullopt: they are valid. Otherwise Error
  // invalid with the field at fault, such as `handler.url`. May wait for a database. Nodes may differ: another node may
  // lack a function or a library.
  virtual std::optional<Error> check(const BizType& type) const = 0;

  // The handler of one type, which runs its attempts. Null: the type's jobs cannot run here, and are not claimed. That
  // includes invalid settings, because check() need not have been called. Must not block. REQUIRES: the kind outlives
  // the handler's start() calls.
  virtual std::shared_ptr<Handler> make(const BizType& type) = 0;

  // Called once, before the first Handler::start(). An Error ends the start of the node.
  virtual Status start() { return Unit{}; }

  // Waits up to `grace` for attempts that run or wait in a queue (webhook: does not wait). After that a running attempt
  // ends as Outcome::retry("shutting down"). An attempt that has not begun, or is started later, ends either so or as
  // Outcome::not_started. May be called again.
  virtual void stop(Duration grace) { static_cast<void>(grace); }

  virtual std::vector<KindMetric> metrics() { return {}; }

  // The endpoints (servers) that the kind's types deliver to, in no order.
  virtual std::vector<EndpointInfo> endpoints() const { return {}; }

  // `changed` is called when the capacity of a handler's start pool may have grown although no attempt ended. The call
  // comes on any thread, but not from within a member function of this object. REQUIRES: before start().
  virtual void on_capacity_change(std::function<void()> changed) { static_cast<void>(changed); }
};

// HandlerKind::check() of kinds without settings: handler_json must have no field but `kind`.
std::optional<Error> check_bare(const BizType& type);

}  // namespace tocsin
