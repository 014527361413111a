// PermitRenewer: the stage that renews this node's permits of max_running and rates, twice a second, and gives them to
// FlowControl. It asks for the node's fair share of every limit, returns permits that others need more, and renews the
// rest before it expires. The store guards the sum only; every node computes the shares from the same rows.
//
// Errors: a request that failed is reported to the event sink and repeated with a higher number after retry_pause. When
// the grants expire meanwhile, jobs of types with limits do not start.
// Thread: owner only, except set_catalog() and drain() (any).
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
  Duration ttl = std::chrono::seconds(5);  // length of a grant: the heartbeat time-out
  Duration longest_interval = std::chrono::milliseconds(500);
  Duration short_interval = std::chrono::milliseconds(200);  // while other nodes hold permits that this one needs
  Duration retry_pause = std::chrono::milliseconds(200);     // after a request that failed

  // Between renewals: several within the length of a grant.
  Duration interval() const { return std::min(longest_interval, ttl / 5); }
  // Added to the lease of a request, so that the permits of a dead node are still reserved when another node, at which
  // its leases were extended, takes them over.
  Duration takeover_delay() const { return ttl / 2; }
  // How long a grant is valid here, counted from before the request: a little less than the store keeps it.
  Duration trust() const { return ttl - ttl / 10; }
};

// A step is one call of the store: a renewal of all grants, or a takeover. Its data members are the objects that it
// asks and what the last replies said, which the next request depends on.
class PermitRenewer final : public Stage {
 public:
  // `waiting`: the type's jobs that are due on this node, in all its engines.
  using WaitingOf = std::function<Waiting(TypeId)>;
  PermitRenewer(PermitConfig config, FlowControl& flow, PermitStore& store, EventSink& events, WaitingOf waiting)
      : config_(config), flow_(flow), store_(store), events_(events), waiting_(std::move(waiting)) {}

  // REQUIRES: before the first step and the first claim.
  void set_waker(Waker* self) { flow_.begin_sharing(self_ = self); }
  // The types whose jobs this node can run.
  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);
  // Takes no more permits, and returns those not in use.
  void drain();
  // The last request: returns all permits except those of leases, which are free when the leases end. Error: the
  // store's; the permits expire then.
  // REQUIRES: no step runs.
  Status leave(MonoTime now);

  const char* name() const override { return "permit_renewer"; }
  MonoTime step(MonoTime now) override;

 private:
  using Key = std::pair<TypeId, Limit>;
  // A takeover of permits of dead nodes for foreign leases here.
  struct Takeover {
    TypeId type = 0;
    int granted = 0;  // what this node had before
    int wanted = 0;   // foreign leases: as many permits are asked for
  };

  std::vector<PermitRequest> requests(MonoTime now);
  PermitRequest request_for(const BizType& type, Limit limit, MonoTime now);
  // Returns whether to ask the store again at once: there are permits to return, or free ones to take.
  bool apply(const PermitRequest& request, const PermitReply::Item& item, const PermitReply& reply);
  // How long a job started under a permit may run after the permit's end.
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
  std::map<Key, int> targets_;           // permits that are this node's fair share, by the last reply
  std::vector<Takeover> orphaned_;       // takeovers to be asked for
  std::map<TypeId, Takeover> in_doubt_;  // the answer was lost; the next renewal tells the result
  std::size_t nodes_ = 1;                // that share a limit, as last seen
  std::int64_t number_ = 0;              // of the last request (PermitBeat::number)
  bool got_fewer_than_needed_ = false;   // of some limit, in the last reply
  bool was_repeated_ = false;            // the last reply was followed by a step at once: not two in a row
  std::atomic<bool> is_draining_{false};
};

}  // namespace tocsin
