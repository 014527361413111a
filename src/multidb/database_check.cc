#include "multidb/database_check.h"

#include "postgres/migrator.h"

namespace tocsin {
namespace {

// Accepts any database at the address.
SessionConfig accepting_any(const OpenDatabase& database) {
  SessionConfig session = session_of(database, "tocsin check");
  session.expected = nullptr;
  session.has_pinned_plans = false;
  session.keeps_synchronous_commit = true;  // the report reads it
  return session;
}

}  // namespace

DatabaseCheck::DatabaseCheck(const OpenDatabases& open, const OpenDatabase& database, OnReport on_report)
    : open_(open),
      database_id_(database.database_id),
      expected_(database.expected),
      session_(accepting_any(database)),
      on_report_(std::move(on_report)) {}

Status DatabaseCheck::run() {
  Session session(session_);
  const auto found = identify(session);
  if (!found) return Error{ErrorCode::unavailable, found.error().message, ""};
  const bool is_expected = *found == expected_->identity();
  // Not again while the identity is the same: a schema newer than this binary's is usual while nodes are replaced.
  if (!is_met_ || !is_expected) {
    if (auto fits = check(session, *found); !fits) {
      if (is_expected || fits.error().code != ErrorCode::invalid) return fits;
      return Error{ErrorCode::invalid,
                   "another database answers at its address (" + to_string(*found) + ", instead of " +
                       to_string(expected_->identity()) + "): " + fits.error().message,
                   ""};
    }
    expected_->set(*found);
    is_met_ = true;
    is_reported_ = is_reported_ && is_expected;
  }
  // On the session that is open: a server that refuses one more connection is reported, too.
  const auto report = server_report(session);
  if (report) {
    on_report_(*report);
    is_reported_ = true;
  }
  if (!is_reported_) return Error{ErrorCode::unavailable, "its settings cannot be read: " + report.error().message, ""};
  return Unit{};
}

Status DatabaseCheck::check(Session& session, const DatabaseIdentity& found) {
  if (database_id_ == 0) return check_control(session, found);
  // Shards may have moved since the start.
  Session control(session_of(open_.databases.front(), "tocsin check"));
  const auto registry = read_registry(control);
  return check_database(session, registry ? *registry : open_.registry, database_id_, open_.shards);
}

// The start has looked at it. Another one later must be of this installation, and know that it was restored.
Status DatabaseCheck::check_control(Session& session, const DatabaseIdentity& found) {
  if (found == expected_->identity()) return Unit{};
  const auto installed = check_installation(session, open_.shards);
  if (!installed) return installed.error();
  const auto registry = read_registry(session);
  if (!registry) return registry.error();
  if (registry->installation != open_.registry.installation)
    return Error{ErrorCode::invalid, "it belongs to another installation", ""};
  const RegisteredDatabase* known = registry->at(0);
  if (known && known->identity == found) return Unit{};
  return Error{ErrorCode::invalid,
               "if it was restored or copied to take its place, run `tocsin migrate` with all databases", ""};
}

}  // namespace tocsin
