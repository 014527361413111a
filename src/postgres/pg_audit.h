// PgAudit: appends entries to the table tocsin.audit_log of the control database. Implements AuditStore
// (audit/audit.h). Owned by AuditLog (service/audit_log.h), which calls it on a thread of its own. After Error in_doubt
// a repeated call may store the entries twice. Thread: owner only (AuditLog's).
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
