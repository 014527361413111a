#include "postgres/pg_audit.h"

#include "postgres/sql_text.h"
#include "postgres/text.h"

namespace tocsin {
namespace {

void add_or_null(PgArray& array, const std::string& text) { text.empty() ? array.add_null() : array.add_text(text); }

}  // namespace

Status PgAudit::append(std::span<const AuditEntry> entries) {
  PgArray actors, roles, addresses, actions, targets, filters, matched, changed, reasons;
  for (const AuditEntry& entry : entries) {
    actors.add_text(entry.caller.name);
    roles.add_text(entry.caller.role);
    add_or_null(addresses, entry.caller.address);
    actions.add_text(entry.action);
    add_or_null(targets, entry.target);
    add_or_null(filters, entry.filter_json);
    matched.add(entry.matched);
    changed.add(entry.changed);
    add_or_null(reasons, entry.reason);
  }
  return session_.write([&](pqxx::nontransaction& tx) {
    tx.exec_params0(sql::statement("append_audit"), actors.literal(), roles.literal(), addresses.literal(),
                    actions.literal(), targets.literal(), filters.literal(), matched.literal(), changed.literal(),
                    reasons.literal());
  });
}

}  // namespace tocsin
