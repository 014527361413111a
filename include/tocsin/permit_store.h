// How the nodes of a cluster share the limits of a type: kept in the home database. Implemented by PgPermitStore
// (src/postgres) and FakePermitStore (tests/support); tests/contract runs one suite on both.
#pragma once

#include <cstdint>
#include <vector>

#include "tocsin/biz_type.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"
#include "tocsin/member_store.h"

namespace tocsin {

// What is shared. Stored. DO NOT CHANGE
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

// What one node says of one limit of one type.
struct PermitRequest {
  TypeId type_id = 0;
  Limit limit = Limit::running;
  int held = 0;       // it uses no more than so many from now on, whatever it was granted before
  int wanted = 0;     // so many it would like to have in all
  int need = 0;       // for the others: what it could use at once; -1: none, it leaves
  int used = 0;       // in use; only for display
  Duration lease{0};  // jobs started under a permit may run for this long after its end
};

struct PermitBeat {
  NodeId node = 0;
  std::int64_t number = 0;              // grows with every request of the node: one that arrives late changes nothing
  Duration ttl{0};                      // duration of the grant
  std::vector<PermitRequest> requests;  // at most one per type and limit
};

// What one node has of one limit of one type.
struct PermitShare {
  NodeId node = 0;
  int granted = 0;
  int need = 0;
  int used = 0;
  bool is_expired = false;  // not renewed in time: what it had started may still go on
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

// Invariant: the permits that all nodes have been granted of a limit are never more than its total, but for those that
// a node had when the total was lowered. A node's are free again when it gives them back, or when nothing that it
// started under them can go on: ttl and lease after its last request.
// Thread: owner only (each thread has its own).
class PermitStore {
 public:
  virtual ~PermitStore() = default;
  // Gives back what is not held any more, and grants up to what is wanted of what is free.
  virtual Result<PermitReply> renew(const PermitBeat& beat) = 0;
  // A node has taken over up to `n` jobs that nodes had started whose permits have expired: as many permits of theirs
  // as there are are its own from now on. Returns how many. Changes nothing if `number` is not that of the node's last
  // renewal: so one in doubt has happened before the next renewal or never does.
  virtual Result<int> adopt(NodeId node, std::int64_t number, TypeId type, int n) = 0;
  // The node leaves and runs nothing any more. Safe to repeat.
  virtual Status give_back_all(NodeId node) = 0;
};

}  // namespace tocsin
