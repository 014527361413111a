// Permits: this node's part in the limits of types. A cluster-wide limit (max_running, a rate) is divided into permits;
// a node borrows some of them for a short time, as a grant (ports/permit_store.h). Permits owns the stage that renews
// the grants (PermitRenewer), with its thread and its connection to the control database, and answers questions about
// limits. Owned by the node (node_impl.h), which stops it after its engines.
#pragma once

#include <memory>
#include <string>

#include "admission/permit_renewer.h"
#include "base/loop_thread.h"
#include "metrics/metrics.h"
#include "postgres/pg_permit_store.h"

namespace tocsin {

// Thread: owner only (the one that starts and stops the node), except flow(), set_catalog(), drain(), hold_reason(),
// running() and values() (any).
class Permits {
 public:
  // `session`: to the control database. `waiting`: returns how many jobs of a type are due on this node, in all its
  // engines; called on the renewer's thread, and by stop(). `on_step`: called on the renewer's thread. `events`: gets
  // failed database calls. REQUIRES: `clock` and `events` outlive it.
  Permits(const PermitConfig& config, const SessionConfig& session, const Clock& clock, EventSink& events,
          PermitRenewer::WaitingOf waiting, LoopThread::OnStep on_step);
  ~Permits() { stop(false); }

  // What this node may start of each type; the engines of all databases share it.
  const std::shared_ptr<FlowControl>& flow() const { return flow_; }

  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);  // the types whose jobs this node can run
  void start() { loop_.start(); }
  // From now on the renewer returns unused permits and takes no more.
  void drain() { renewer_.drain(); }
  // Ends the thread. `is_clean`: no handler runs on this node any more, so all permits are returned before stop()
  // returns; only permits of leases that consumers hold stay. Permits that are not returned (`is_clean` is false, or
  // the call fails) expire. A second call does nothing.
  void stop(bool is_clean);

  // Why no job of this type starts on this node now, as a part of a sentence; "" when no limit and no full start pool
  // (include/tocsin/start_pool.h: the slots of a handler) holds it. `is_late`: the job was found late, so the type's
  // catch-up rate bounds it, too.
  std::string hold_reason(const BizType& type, bool is_late) const;
  // How many jobs of a type with max_running run in the cluster, as far as this node knows; nullopt: the type has no
  // max_running, or this node has no valid permits of it.
  std::optional<int> running(const BizType& type) const;

  // For the metrics: one value per type and limit, labelled with both. `of` computes the value from this node's grant;
  // it gets an empty grant if this node has no valid one. Types beyond TypeLabels::kMost (200) are added up.
  std::vector<LabelledValue> values(std::function<double(const FlowControl::Grant&)> of) const;

 private:
  const PermitConfig config_;
  const Clock& clock_;
  EventSink& events_;
  Session session_;
  PgPermitStore store_;
  std::shared_ptr<FlowControl> flow_ = std::make_shared<FlowControl>();
  Latest<TypeCatalog> catalog_{std::make_shared<const TypeCatalog>()};
  PermitRenewer renewer_;
  LoopThread loop_;
  bool is_stopped_ = false;
};

}  // namespace tocsin
