// The audit log of writes through the API: its entries and its store.
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

// How a write is recorded.
enum class Audit {
  none,     // it changes nothing
  counted,  // a row per caller, action and minute: writes of programs, thousands a second
  each,     // a row per call
};

struct AuditEntry {
  Audit kind = Audit::each;
  Caller caller;
  std::string action;                   // operationId of the API: "pauseType"
  std::string target;                   // the job, type or bulk operation that the path names
  std::string filter_json;              // of a bulk operation, or the body of a change; empty: none
  std::optional<std::int64_t> matched;  // jobs
  std::optional<std::int64_t> changed;
  std::string reason;
  bool is_left_out = false;  // do not record: the call changed nothing (a dry run)
};

// Where the audit log is kept. Implemented by PgAudit (src/postgres).
// Thread: owner only.
class AuditStore {
 public:
  virtual ~AuditStore() = default;
  // All entries in one transaction.
  virtual Status append(std::span<const AuditEntry> entries) = 0;
};

}  // namespace tocsin
