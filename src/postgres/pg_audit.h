// AuditStore on PostgreSQL: the table tocsin.audit_log of the control database.
#pragma once

#include <span>

#include "audit/audit.h"
#include "postgres/session.h"

namespace tocsin {

// Thread: owner only.
class PgAudit final : public AuditStore {
 public:
  explicit PgAudit(const SessionConfig& config) : session_(config) {}
  Status append(std::span<const AuditEntry> entries) override;

 private:
  Session session_;
};

}  // namespace tocsin
