// PermitRenewer: the stage that renews this node's permits in the control database, normally twice a second, and gives
// them to FlowControl. A permit is a part of a limit of a type (max_running, or a rate). The permits of a limit that
// are lent to this node until a common end are its grant. Permits (node/permits.h) owns the renewer and gives it a
// thread.
//
// A renewal asks for the node's fair share of every limit, returns permits that other nodes need more, and extends the
// rest before it expires. The store guards only the sum of all grants. Every node computes the shares from the same
// rows.
//
// Errors: a request that failed is reported to the event sink. The next one comes after retry_pause, with a higher
// number (PermitBeat::number), because the store ignores older ones. If the grants expire meanwhile, jobs of types with
// limits do not start. Thread: step() the loop thread that Permits starts; set_waker() before it starts and leave()
// after it has ended: the owner's; set_catalog() and drain(): any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "admission/flow_control.h"
#include "base/latest.h"
#include "base/stage.h"
#include "ports/event.h"

namespace tocsin {

struct PermitConfig {
  NodeId node = 0;
  Duration ttl = std::chrono::seconds(5);  // how long a grant lasts; the node sets its heartbeat time-out
  Duration longest_interval = std::chrono::milliseconds(500);
  Duration short_interval = std::chrono::milliseconds(200);  // while other nodes hold permits that this one needs
  Duration retry_pause = std::chrono::milliseconds(200);     // after a request that failed

  // Time between renewals; a grant lasts for several of them.
  Duration interval() const { return std::min(longest_interval, ttl / 5); }
  // Added to PermitRequest::lease, so that the store keeps the permits of a dead node reserved for this much longer. In
  // that time another node that has extended leases of the dead node takes over their permits.
  Duration takeover_delay() const { return ttl / 2; }
  // How long this node uses a grant, from before the request: a little less than the store keeps it.
  Duration trust() const { return ttl - ttl / 10; }
};

// A step is one call of the store: a renewal of all grants, or a takeover (permits of a dead node come to this node,
// for leases that were extended here). The data members keep what the last replies said, on which the next request
// depends.
class PermitRenewer final : public Stage {
 public:
  // Returns how many jobs of the type are due on this node and not claimed, in all its engines. Called on the loop
  // thread and by leave().
  using WaitingOf = std::function<Waiting(TypeId)>;
  PermitRenewer(PermitConfig config, FlowControl& flow, PermitStore& store, EventSink& events, WaitingOf waiting)
      : config_(config), flow_(flow), store_(store), events_(events), waiting_(std::move(waiting)) {}

  // From now on starts need permits (FlowControl::begin_sharing()). REQUIRES: before the first step and the first
  // claim.
  void set_waker(Waker* self) { flow_.begin_sharing(self_ = self); }
  // The types whose jobs this node can run.
  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);
  // From now on the node takes no permits, and returns those that are not in use.
  void drain();
  // The last request of a node that stops: returns all permits except those of leases, which the store frees when the
  // leases end. Error: the store's; the permits are free when they expire.
  // REQUIRES: no step runs.
  Status leave(MonoTime now);

  const char* name() const override { return "permit_renewer"; }
  MonoTime step(MonoTime now) override;

 private:
  using Key = std::pair<TypeId, Limit>;
  // A takeover of permits of dead nodes, for foreign leases: those that another node granted and this node extended.
  struct Takeover {
    TypeId type = 0;
    int granted = 0;  // what this node had before
    int wanted = 0;   // foreign leases: as many permits are asked for
  };

  std::vector<PermitRequest> requests(MonoTime now);
  PermitRequest request_for(const BizType& type, Limit limit, MonoTime now);
  // True: ask the store again at once, because there are permits to return, or free ones to take.
  bool apply(const PermitRequest& request, const PermitReply::Item& item, const PermitReply& reply);
  // PermitRequest::lease: how long after the end of the grant jobs started under it may still run.
  Duration lease_of(const BizType& type, MonoTime now) const;
  MonoTime take_over(MonoTime now);
  // If a takeover is in doubt, learns its result from the reply of this renewal.
  void settle_doubt(TypeId type, int granted);

  const PermitConfig config_;
  FlowControl& flow_;
  PermitStore& store_;
  EventSink& events_;
  const WaitingOf waiting_;
  Waker* self_ = nullptr;
  Latest<TypeCatalog> catalog_{std::make_shared<const TypeCatalog>()};
  std::map<Key, int> targets_;           // this node's fair share of each limit, in permits, by the last reply
  std::vector<Takeover> takeovers_;      // takeovers that the next steps ask for
  std::map<TypeId, Takeover> in_doubt_;  // takeovers whose answer was lost; the next renewal tells the result
  std::size_t nodes_ = 1;                // number of nodes that share a limit, by the last reply
  std::int64_t number_ = 0;              // of the last request (PermitBeat::number)
  bool got_fewer_than_needed_ = false;   // of some limit, by the last reply
  bool was_repeated_ = false;            // a step followed the last reply at once; not allowed twice in a row
  std::atomic<bool> is_draining_{false};
};

}  // namespace tocsin
