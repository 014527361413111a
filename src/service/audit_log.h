// AuditLog: writes the audit log of a node, which says which token changed what through the API. The router
// (api/router.h) makes an entry for each recorded call and NodeBackend passes it to record(); a thread of the AuditLog
// writes to the control database. Owned by the node (node/node_impl.h), one per node.
//
// - Entries wait in memory until the next flush, about a second later.
// - Counted calls (Audit::counted) are added up per caller and action, and the sums are written once a minute. A
//   counted call by an admin on one job is an entry of its own, and so is one that changed many jobs.
// - Calls without a token are not recorded.
// - While the database is down 10,000 entries and 1,000 sums wait at most; further calls are dropped and counted in
//   lost().
// - A write in doubt is not repeated. Its entries may be missing, and count as lost.
// - Lost without being counted: what a killed node has not written, or a node that stops while the database is down.
//
// Thread: record and lost any; flush see there; the rest owner only (the thread that starts and stops the node).
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "audit/audit.h"
#include "base/mutex.h"
#include "base/worker_thread.h"
#include "tocsin/clock.h"

namespace tocsin {

class AuditLog {
 public:
  AuditLog(std::unique_ptr<AuditStore> store, const Clock& clock);
  ~AuditLog() { stop(); }

  void start();
  void stop() { worker_.stop(); }  // writes what waits, then ends the thread; later entries are not written
  void record(AuditEntry entry);
  // Writes up to 1,000 entries, and the sums if their minute is over or `is_last`; what cannot be written stays
  // queued. True: more entries wait. Thread: that of start(); without start() the owner.
  bool flush(bool is_last);
  // Number of calls dropped since the start, and of entries in doubt (a sum is one); the metric
  // tocsin_audit_entries_lost_total.
  std::int64_t lost() const { return lost_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;  // name, role, address, action
  void run();
  bool is_empty() const;

  const Clock& clock_;
  const std::unique_ptr<AuditStore> store_;
  mutable Mutex mutex_;
  std::deque<AuditEntry> entries_ TOCSIN_GUARDED_BY(mutex_);
  std::map<Key, std::int64_t> counts_ TOCSIN_GUARDED_BY(mutex_);
  MonoTime counted_since_ TOCSIN_GUARDED_BY(mutex_){};
  std::atomic<std::int64_t> lost_{0};
  WorkerThread worker_;
};

}  // namespace tocsin
