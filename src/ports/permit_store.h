// PermitStore: permits, by which nodes share the limits of a type (max_running, rates), in the control database.
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
  running = 0,   // max_running: a permit is for one job that runs or is leased
  rate = 1,      // rate_per_s: a permit is a thousandth of the rate
  catch_up = 2,  // catch_up.rate_per_s: a permit is a thousandth of the rate
};
inline constexpr int kLimits = 3;
inline constexpr int kWholeRate = 1000;  // permits of a whole rate

// How many permits there are of a limit of a type; 0: the type has no such limit.
int permits_of(const BizType& type, Limit limit);
// The limit in jobs per second; 0: the type has no such limit, or it is max_running.
double rate_of(const BizType& type, Limit limit);

// The request of one node for one limit of one type.
struct PermitRequest {
  TypeId type_id = 0;
  Limit limit = Limit::running;
  int held = 0;       // permits that it keeps using; the store frees the rest of its earlier grant
  int wanted = 0;     // permits that it would like to hold in all
  int need = 0;       // permits that it could use now: all nodes compute their fair shares from it; -1: it leaves
  int used = 0;       // permits in use; only for display
  Duration lease{0};  // jobs started under a permit may run for this long after its end
};

struct PermitBeat {
  NodeId node = 0;
  std::int64_t number = 0;  // grows with every request of the node, so one that arrives late changes nothing
  Duration ttl{0};          // how long the grant lasts
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
    int total = 0;                    // permits of the limit, as the registry has it now
    std::vector<PermitShare> shares;  // of all nodes, by node id
  };
  std::vector<Item> items;  // one per request, in order
  WallTime db_now{};
  MonoTime asked{}, answered{};  // the local clock before the request and after the reply
};

// Invariant: the permits granted to all nodes never exceed the total of the limit, except while nodes hold more after
// the total was lowered. Permits are free again when their node returns them, or `ttl` + `lease` after its last
// request: no job started under them can still run then. Thread: owner only (each thread has its own).
class PermitStore {
 public:
  virtual ~PermitStore() = default;
  // Frees the node's permits beyond `held`, then grants free ones up to `wanted`.
  virtual Result<PermitReply> renew(const PermitBeat& beat) = 0;
  // For a node that knows `n` leases granted by nodes whose permits have expired: transfers up to `n` of those permits
  // (max_running) to it and returns how many. Changes nothing unless `number` is that of the node's last renewal, so a
  // call in doubt has happened before the next renewal or never happens.
  virtual Result<int> take_over(NodeId node, std::int64_t number, TypeId type, int n) = 0;
  // Frees all permits of a node that leaves and runs nothing any more. Safe to repeat.
  virtual Status return_all(NodeId node) = 0;
};

}  // namespace tocsin
