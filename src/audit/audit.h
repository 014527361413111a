// The audit log: which token changed what through the API. The router (api/router.h) makes an entry for each
// successful call that is recorded; AuditLog (service/audit_log.h) gathers a node's entries and stores them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tocsin/error.h"

namespace tocsin {

// The caller of a request.
struct Caller {
  std::string name;     // of the token; empty: this node has no tokens
  std::string role;     // "admin" for everyone where there are no tokens
  std::string address;  // of the other end of the connection, without the port
};

// How a route's successful calls are recorded. Calls without a token (the node has none) are never recorded.
enum class Audit {
  none,  // not at all: it changes nothing
  // Calls are added up to a row per caller, action and minute: programs make thousands a second. A call on one job by
  // an admin gets a row of its own, and so does one that changed many jobs (it has a filter_json).
  counted,
  each,  // a row per call
};

struct AuditEntry {
  Audit kind = Audit::each;
  Caller caller;
  std::string action;                   // operationId of the API: "pauseType"
  std::string target;                   // first argument of the path (a job, type, ...), or a bulk that began; or empty
  std::string filter_json;              // of a bulk operation that began, or a call that changed many jobs; empty: none
  std::optional<std::int64_t> matched;  // jobs that the filter of a bulk operation matched when it began
  std::optional<std::int64_t> changed;  // jobs; nullopt of a counted call: one
  std::string reason;                   // of a bulk operation, a pause or a retry of many, in the caller's words
  bool is_left_out = false;             // set by a handler whose call changed nothing (a dry run): not recorded
};

// Where the audit log is kept. Implemented by PgAudit (src/postgres).
// Thread: owner only (AuditLog's).
class AuditStore {
 public:
  virtual ~AuditStore() = default;
  // Stores all entries in one transaction; waits for the database. Error in_doubt: they may be stored; else none is.
  virtual Status append(std::span<const AuditEntry> entries) = 0;
};

}  // namespace tocsin
