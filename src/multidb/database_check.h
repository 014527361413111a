// DatabaseCheck: checks whether the registered database answers at an address (ADR 0051), because another one may have
// been promoted or restored there. Housekeeping of the database calls it at the start, after a new connection or a
// failure, and every 30 s (every 3 s through a pooler). While it fails with `invalid`, Database closes the database:
// nothing is scanned, and requests are refused.
#pragma once

#include <functional>

#include "multidb/open_databases.h"

namespace tocsin {

// Thread: owner only.
class DatabaseCheck {
 public:
  using OnReport = std::function<void(const ServerReport&)>;
  // `on_report`: called inside run() after a check that passed, with the server's settings that an operator should
  // know; not called when they cannot be read. REQUIRES: `open` outlives it.
  DatabaseCheck(const OpenDatabases& open, const OpenDatabase& database, OnReport on_report);

  // Opens a connection of its own and compares the identity (what tells two databases at one address apart). At the
  // first call, unless the start of the node has done it (control database), and when the identity has changed, it also
  // checks schema and registration; a restored database that `migrate` has registered again is then the expected one of
  // all sessions. Error invalid: another database answers, or a schema that this binary does not know;
  // unavailable: none answers, or a standby.
  Status run();

 private:
  Status check(Session& session, const DatabaseIdentity& found);
  Status check_control(Session& session, const DatabaseIdentity& found);

  const OpenDatabases& open_;
  const DatabaseId database_id_;
  const std::shared_ptr<ExpectedDatabase> expected_;
  const SessionConfig session_;
  const OnReport on_report_;
  bool is_met_ = false;  // a check has passed: schema and registration fit
};

}  // namespace tocsin
