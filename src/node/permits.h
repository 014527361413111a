// Permits: runs the permit renewer with a thread and a connection to the control database, and answers questions about
// limits for explain and the metrics. A cluster-wide limit of a type (max_running, a rate) is divided into permits; the
// renewer borrows some of them for this node, for a short time (a grant: ports/permit_store.h). One per node; the node
// stops it after its engines.
#pragma once

#include <memory>
#include <string>

#include "admission/permit_renewer.h"
#include "base/loop_thread.h"
#include "metrics/metrics.h"
#include "postgres/pg_permit_store.h"

namespace tocsin {

// Thread: owner only, except flow(), set_catalog(), drain(), hold_reason(), running() and values() (any).
class Permits {
 public:
  // `session`: with the control database. `waiting`: returns the type's jobs that are due on this node, in all its
  // engines. `waiting` and `on_step` are called on the renewer's thread, `waiting` also by stop(); `events` gets failed
  // database calls. REQUIRES: `clock` and `events` outlive it.
  Permits(const PermitConfig& config, const SessionConfig& session, const Clock& clock, EventSink& events,
          PermitRenewer::WaitingOf waiting, LoopThread::OnStep on_step);
  ~Permits() { stop(false); }

  // What this node may start of each type; shared by the engines of all databases.
  const std::shared_ptr<FlowControl>& flow() const { return flow_; }

  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);  // the types whose jobs this node can run
  void start() { loop_.start(); }
  // From now on the renewer returns unused permits and takes no more.
  void drain() { renewer_.drain(); }
  // Ends the thread. `is_clean`: no handler runs here any more, so all permits are returned in this call, but for those
  // of leases that consumers hold. If it is false or the call fails, the permits expire. A second call does nothing.
  void stop(bool is_clean);

  // Why no job of this type starts here now, as a part of a sentence; "" when neither a limit nor a full start pool
  // (tocsin/start_pool.h) is the reason. `is_late`: the job was found late, so that the type's catch-up rate
  // bounds it, too.
  std::string hold_reason(const BizType& type, bool is_late) const;
  // How many jobs of a type with max_running run in the cluster, as far as this node knows; nullopt: the type has no
  // max_running, or this node has no valid permits of it.
  std::optional<int> running(const BizType& type) const;

  // For the metrics: one value per type and limit, labelled with both, which `of` computes from this node's grant;
  // without a valid grant `of` gets an empty one. Types beyond TypeLabels::kMost are added up.
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
