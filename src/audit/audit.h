// The audit log: which API token changed what. The router (api/router.h) makes an entry for each call that its route
// records and that changed something; AuditLog (service/audit_log.h) gathers the entries of a node and stores them.
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
  std::string role;     // of the token; "admin" for every caller if the node has no tokens
  std::string address;  // the remote address of the connection, without port
};

// How calls of a route are recorded. Calls without a token are never recorded.
enum class Audit {
  none,  // not at all: it changes nothing
  // One row per caller, action and minute, with the number of calls: programs make thousands a second. Two kinds of
  // calls get a row each: a call on one job by an admin, and a call that changed many jobs (it has a filter_json).
  counted,
  each,  // a row per call
};

struct AuditEntry {
  Audit kind = Audit::each;
  Caller caller;
  std::string action;  // operationId of the API: "pauseType"
  // First argument of the path (a job, a type, ...), or the id of a bulk operation that began; may be empty.
  std::string target;
  // Filter of a bulk operation that began, or of a call that changed many jobs; empty: none.
  std::string filter_json;
  std::optional<std::int64_t> matched;  // jobs that the filter of a bulk operation matched when it began
  std::optional<std::int64_t> changed;  // jobs; nullopt of a counted call: one
  std::string reason;                   // the caller's text, of a bulk operation, a pause or a retry of many jobs
  bool is_left_out = false;             // set by a handler whose call changed nothing (a dry run): not recorded
};

// Where the audit log is kept. Implemented by PgAudit (src/postgres).
// Thread: owner only (AuditLog's).
class AuditStore {
 public:
  virtual ~AuditStore() = default;
  // Stores all entries in one transaction; waits for the database. Error in_doubt: the entries may be stored. Other
  // Errors: none is stored.
  virtual Status append(std::span<const AuditEntry> entries) = 0;
};

}  // namespace tocsin
