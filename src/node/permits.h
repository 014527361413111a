// Runs the permit renewer with its thread and connection, and answers questions about limits (explain, metrics).
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

  // For the engines of this node.
  const std::shared_ptr<FlowControl>& flow() const { return flow_; }

  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);
  void start() { loop_.start(); }
  // Returns unused permits, and takes no more.
  void drain() { renewer_.drain(); }
  // `is_clean`: only leased jobs are left, so all other permits are returned.
  void stop(bool is_clean);

  // Why no job of this type starts here now, as a part of a sentence; "" when none of the limits is the reason.
  // `is_late`: a job that waits at the catch-up pace.
  std::string hold_reason(const BizType& type, bool is_late) const;
  // How many jobs of a type with max_running run in the cluster, as far as this node knows.
  std::optional<int> running(const BizType& type) const;

  // For the metrics.
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
