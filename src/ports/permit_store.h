// PermitStore: shares the limits of a type (max_running, rates) among the nodes. A limit is a number of permits. Each
// node has a grant of each limit: some of its permits, lent for a time, within which the node starts jobs. A thread of
// each node, the permit renewer, renews its grants at least twice a second. They are stored in the control database.
//
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

// The limit that permits belong to. The numbers are stored: DO NOT CHANGE.
enum class Limit : std::int16_t {
  running = 0,   // max_running: a permit is for one job that runs or is leased
  rate = 1,      // rate_per_s: a permit is a thousandth of the rate
  catch_up = 2,  // catch_up.rate_per_s: a permit is a thousandth of the rate
};
inline constexpr int kLimits = 3;
inline constexpr int kWholeRate = 1000;  // permits of a rate, in the whole cluster

// How many permits of the limit the cluster has; 0: the type has no such limit. An instant type (its handler does
// nothing) has no permits of `running`.
int permits_of(const BizType& type, Limit limit);
// The rate in jobs per second; 0: the type has no such rate. For `running` always 0.
double rate_of(const BizType& type, Limit limit);

// What one node has and asks for, of one limit of one type.
struct PermitRequest {
  TypeId type_id = 0;
  Limit limit = Limit::running;
  int held = 0;       // permits of its grant that it keeps; the store frees the others
  int wanted = 0;     // the size that the grant may grow to: the node's fair share, as far as known
  int need = 0;       // permits that its jobs could use now: nodes compute their fair shares from the needs of all;
                      // -1: it drains and wants no share
  int used = 0;       // permits in use; only for display
  Duration lease{0};  // jobs started under the grant may run for this long after it ends
};

// One renewal of the grants of a node.
struct PermitBeat {
  NodeId node = 0;
  std::int64_t number = 0;  // grows with each beat of the node: one that arrives late or again changes nothing
  Duration ttl{0};          // how long the grants last from now on
  std::vector<PermitRequest> requests;  // at most one per type and limit
};

// The grant of one node, of one limit of one type.
struct PermitShare {
  NodeId node = 0;
  int granted = 0;  // permits
  int need = 0;     // this and `used`: as in the node's last request
  int used = 0;
  bool is_expired = false;  // not renewed in time: jobs started under it may still run
};

struct PermitReply {
  struct Item {
    int total = 0;                    // permits of the limit, as stored now; 0: no such type or limit
    std::vector<PermitShare> shares;  // of all nodes that share it, this one included, by node id
  };
  std::vector<Item> items;  // one per request, in order
  WallTime db_now{};        // the database's clock
  // The local clock before the request and after the reply. The grants last at least until `asked` + ttl.
  MonoTime asked{}, answered{};
};

// Invariant: the permits granted to all nodes never exceed the total of the limit, except while nodes hold more after
// the total was lowered. Permits are free again when their node returns them, or `ttl` + `lease` after its last
// request, when no job started under them can still run. Calls block until the control database answers. Errors:
// unavailable, in_doubt. Thread: owner only (each thread has its own store).
class PermitStore {
 public:
  virtual ~PermitStore() = default;
  // Frees the node's permits beyond `held`, then grants free ones up to `wanted`. After an error the caller sends the
  // next beat, with a higher number and what the node holds.
  virtual Result<PermitReply> renew(const PermitBeat& beat) = 0;
  // Transfers up to `n` permits of `running` to `node`, from nodes whose grants have expired, and returns how many. For
  // foreign leases: leases that another node granted and `node` extended, which continue here when that node is dead.
  // Changes nothing and returns 0 unless `number` is that of the node's last beat for this limit. So a call in doubt
  // has happened before the next beat, whose reply shows it, or never happens; repeating it could transfer `n` more.
  virtual Result<int> take_over(NodeId node, std::int64_t number, TypeId type, int n) = 0;
  // Frees all permits of a node that leaves and runs no job any more. Safe to repeat.
  virtual Status return_all(NodeId node) = 0;
};

}  // namespace tocsin
