// AuditLog: writes the audit log of a node: which token changed what through the API. The request threads record
// entries; a thread of its own writes them to the control database.
//
// Entries wait in memory until the next flush, about a second later. Counted calls (Audit::counted) are added up per
// caller and action and written once a minute; those of an admin on one job, and those that changed many jobs, are
// entries of their own. Calls without a token are not recorded. While the database is down 10,000 entries and 1,000
// sums wait at most; further calls are dropped and counted in lost(). Not counted there: what a killed node has not
// written, or one that stops while the database is down, and writes in doubt, which are not repeated.
// Thread: record and lost any; the rest owner only.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "audit/audit.h"
#include "base/mutex.h"
#include "base/worker_thread.h"
#include "postgres/pg_audit.h"
#include "tocsin/clock.h"

namespace tocsin {

class AuditLog {
 public:
  AuditLog(const SessionConfig& session, const Clock& clock);
  ~AuditLog() { stop(); }

  void start();
  void stop() { worker_.stop(); }  // after a last flush; later entries are not written
  void record(AuditEntry entry);
  // Calls dropped since the start; the metric tocsin_audit_entries_lost_total.
  std::int64_t lost() const { return lost_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;  // name, role, address, action
  void run();
  bool is_empty() const;
  // Writes up to 1,000 entries, and the sums when their minute is over or `is_last`. True: there are more entries.
  bool flush(bool is_last);

  const Clock& clock_;
  PgAudit store_;
  mutable Mutex mutex_;
  std::deque<AuditEntry> entries_ TOCSIN_GUARDED_BY(mutex_);
  std::map<Key, std::int64_t> counts_ TOCSIN_GUARDED_BY(mutex_);
  MonoTime counted_since_ TOCSIN_GUARDED_BY(mutex_){};
  std::atomic<std::int64_t> lost_{0};
  WorkerThread worker_;
};

}  // namespace tocsin
