// EventSink: takes the events of a node: counters, starts, ends and failed store calls. The stages of the engines, the
// membership and the REST API report them as they happen. The node's sink turns them into metrics, reports and log
// lines; the simulator's sink checks them.
#pragma once

#include <cstdint>
#include <string_view>

#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

enum class Counter {
  candidates,       // scanned rows taken into memory, to be claimed when they are due
  refused,          // scanned rows or hints that did not fit into memory
  claims_won,       // jobs claimed, those of backlog claims and fired ones included
  claims_lost,      // candidates not won: claimed by another node, cancelled, or due at another time
  claims_in_doubt,  // claim statements whose answer was lost
  backlog_claims,   // jobs of claims_won that were claimed from the table, without a scan
  finished_done,    // outcomes written, of handlers of this node and of leases that callers reported to it
  finished_retry,
  finished_dead,
  released,        // claims released: the attempt never started
  set_aside,       // outcomes that could not be written even alone: tried again apart from the others
  stale_finishes,  // outcomes that changed nothing: the claim was lost, or an earlier call had written it
  expired_starts,  // claimed jobs whose lease or start window was over before they could start
  marked_dead,     // jobs made dead because the lease of their last attempt ended
  audit_found,     // overdue rows before the floor of their lane, found by an audit: must stay zero
  dropped_late,    // jobs made dead because they were later than their type's catch_up.drop_older_than_ms
  store_errors,    // failed store calls; the sink counts it in failed(), no caller does
};
inline constexpr int kCounters = 17;  // of the enumerators above

// Thread: any; must not block.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void count(Counter what, std::int64_t n = 1) = 0;
  // First start of a job. `lateness`: how long after Job::due_at(); negative if a job was made due before its deadline
  // and fired.
  virtual void started(TypeId type, Duration lateness) = 0;
  // An attempt by a handler of this node has ended. The duration is from its start until the finisher took its outcome.
  // Not called for fired jobs, leases, and attempts that did not start.
  enum class Ending { done, dead, retry };
  virtual void ended(TypeId, Ending, Duration) {}
  // `n` attempts that no handler of this node made have ended: fired jobs, and leases that callers reported to it.
  virtual void ended_elsewhere(TypeId, Ending, std::int64_t) {}
  // A store call failed. `stage`: the part that made it, for metrics and logs: "finisher", "hints".
  virtual void failed(std::string_view stage, const Error& error) = 0;
};

}  // namespace tocsin
