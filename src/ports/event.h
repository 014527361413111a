// Events of the engine: counters, starts, ends and failed calls. The stages report them to an EventSink as they happen;
// the node's sink makes metrics and log lines of them, the simulator's makes checks.
#pragma once

#include <cstdint>
#include <string_view>

#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

enum class Counter {
  candidates,       // scanned rows taken into memory
  refused,          // scanned rows or hints that did not fit into memory
  claims_won,       // jobs, those of backlog claims and fired ones included
  claims_lost,      // jobs not won: another node claimed it, or it was cancelled or moved
  claims_in_doubt,  // the answer to a claim was lost
  backlog_claims,   // of claims_won: claimed straight from the table
  finished_done,
  finished_retry,
  finished_dead,
  released,        // claims released: the attempt never started
  set_aside,       // outcomes that failed by themselves: tried again apart from the others
  stale_finishes,  // outcomes of lost claims: they changed nothing
  expired_starts,  // claimed jobs whose lease or start window was over before they could start
  marked_dead,     // jobs made dead because the lease of their last attempt ended
  audit_found,     // overdue rows that only the audit could find: must stay zero
  dropped_late,    // jobs made dead because they were later than their type's catch_up.drop_older_than_ms
  store_errors,    // failed store calls; counted by the sink in failed()
};
inline constexpr int kCounters = 17;

// Thread: any; must not block.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void count(Counter what, std::int64_t n = 1) = 0;
  // First start of a job. `lateness`: how long after Job::due_at(), not negative.
  virtual void started(TypeId type, Duration lateness) = 0;
  // An attempt by a handler of this node has ended, after this duration. Not called for leases of consumers.
  enum class Ending { done, dead, retry };
  virtual void ended(TypeId, Ending, Duration) {}
  // A store call of a stage failed.
  virtual void failed(std::string_view stage, const Error& error) = 0;
};

}  // namespace tocsin
