#include "postgres/pg_audit.h"

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
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    tx.exec_params0(
        "INSERT INTO tocsin.audit_log (actor, role, address, action, target, filter, matched, changed, reason) SELECT "
        "* "
        "FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::bigint[], "
        "$8::bigint[], $9::text[])",
        actors.literal(), roles.literal(), addresses.literal(), actions.literal(), targets.literal(), filters.literal(),
        matched.literal(), changed.literal(), reasons.literal());
    return Unit{};
  });
}

}  // namespace tocsin
