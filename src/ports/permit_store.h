// The store of permits, by which nodes share the limits of a type (max_running, rates), in the control database.
// Implemented by PgPermitStore (src/postgres) and FakePermitStore (tests/support); tests/contract runs one suite on
// both.
#pragma once

#include <cstdint>
#include <vector>

#include "ports/biz_type.h"
#include "ports/member_store.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// The limit that permits belong to. Stored. DO NOT CHANGE.
enum class Limit : std::int16_t {
  running = 0,   // max_running: permits, one per job that runs or is leased
  rate = 1,      // rate_per_s: in thousandths
  catch_up = 2,  // catch_up.rate_per_s: in thousandths
};
inline constexpr int kLimits = 3;
inline constexpr int kWholeRate = 1000;  // all thousandths of a rate

// How many permits there are of a limit of a type; 0: the type has no such limit.
int permits_of(const BizType& type, Limit limit);
// Jobs per second; 0: there is no such limit, or it is no rate.
double rate_of(const BizType& type, Limit limit);

// The request of one node for one limit of one type.
struct PermitRequest {
  TypeId type_id = 0;
  Limit limit = Limit::running;
  int held = 0;       // permits that it keeps using; the store frees the rest of its earlier grant
  int wanted = 0;     // permits that it would like to hold in all
  int need = 0;       // permits that it could use at once, for the other nodes to compute shares; -1: it leaves
  int used = 0;       // in use; only for display
  Duration lease{0};  // jobs started under a permit may run for this long after its end
};

struct PermitBeat {
  NodeId node = 0;
  std::int64_t number = 0;              // grows with every request of the node: one that arrives late changes nothing
  Duration ttl{0};                      // duration of the grant
  std::vector<PermitRequest> requests;  // at most one per type and limit
};

// The permits of one node for one limit of one type.
struct PermitShare {
  NodeId node = 0;
  int granted = 0;
  int need = 0;
  int used = 0;
  bool is_expired = false;  // not renewed in time: jobs started under them may still run
};

struct PermitReply {
  struct Item {
    int total = 0;                    // as the registry has it now
    std::vector<PermitShare> shares;  // by node, this one's included
  };
  std::vector<Item> items;  // one per request, in order
  WallTime db_now{};
  MonoTime asked{}, answered{};  // the local clock before the request and after the reply
};

// Invariant: the permits granted to all nodes never exceed the total of the limit, except those held when the total was
// lowered. Permits are free again when their node returns them, or `ttl` and `lease` after its last request, when no
// job started under them can still run.
// Thread: owner only (each thread has its own).
class PermitStore {
 public:
  virtual ~PermitStore() = default;
  // Frees permits that are no longer held, then grants free ones up to what is wanted.
  virtual Result<PermitReply> renew(const PermitBeat& beat) = 0;
  // The node has taken over `n` leases of nodes whose permits have expired: transfers up to `n` of their permits to it
  // and returns how many. Changes nothing unless `number` is that of the node's last renewal, so a call in doubt has
  // happened before the next renewal or never happens.
  virtual Result<int> take_over(NodeId node, std::int64_t number, TypeId type, int n) = 0;
  // Frees all permits of a node that leaves and runs nothing any more. Safe to repeat.
  virtual Status return_all(NodeId node) = 0;
};

}  // namespace tocsin
