// PgAudit: appends to the table tocsin.audit_log of the control database. Implements AuditStore (audit/audit.h).
// AuditLog has one, on a thread of its own. Entries that are appended again after Error in_doubt may be stored twice.
// Thread: owner only.
#pragma once

#include <span>

#include "audit/audit.h"
#include "postgres/session.h"

namespace tocsin {

class PgAudit final : public AuditStore {
 public:
  explicit PgAudit(const SessionConfig& config) : session_(config) {}
  Status append(std::span<const AuditEntry> entries) override;

 private:
  Session session_;
};

}  // namespace tocsin
