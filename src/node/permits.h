// Runs the permit renewer (the stage that borrows this node's part of the cluster-wide limits of types) with its thread
// and connection, and answers questions about limits for explain and the metrics.
#pragma once

#include <memory>
#include <string>

#include "admission/permit_renewer.h"
#include "base/loop_thread.h"
#include "metrics/metrics.h"
#include "postgres/pg_permit_store.h"

namespace tocsin {

// Thread: owner only, except set_catalog(), drain(), hold_reason(), running() and values() (any).
class Permits {
 public:
  Permits(const PermitConfig& config, const SessionConfig& session, const Clock& clock, EventSink& events,
          PermitRenewer::WaitingOf waiting, LoopThread::OnStep on_step);
  ~Permits() { stop(false); }

  // What this node may start of each type; shared by the engines of all databases.
  const std::shared_ptr<FlowControl>& flow() const { return flow_; }

  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);
  void start() { loop_.start(); }
  // Returns unused permits, and takes no more.
  void drain() { renewer_.drain(); }
  // `is_clean`: no claimed job is left except leases of consumers, so all other permits are returned at once; otherwise
  // they expire.
  void stop(bool is_clean);

  // Why no job of this type starts here now, as a part of a sentence; "" when none of the limits is the reason.
  // `is_late`: a job that waits at the catch-up pace.
  std::string hold_reason(const BizType& type, bool is_late) const;
  // How many jobs of a type with max_running run in the cluster, as far as this node knows.
  std::optional<int> running(const BizType& type) const;

  // For the metrics: the value of each grant, labelled with type and limit.
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
