// DatabaseCheck: checks that the registered database answers at an address (ADR 0051), because another one may have
// been promoted or restored there. Housekeeping of each database (maintenance/housekeeping.h) calls it at its start,
// after a new connection or a failure, and every 30 s (every 3 s through a pooler). While the check fails with
// `invalid`, Database (node/database.h) scans nothing and refuses requests.
#pragma once

#include <functional>

#include "multidb/open_databases.h"

namespace tocsin {

// Thread: owner only (housekeeping's).
class DatabaseCheck {
 public:
  using OnReport = std::function<void(const ServerReport&)>;
  // `on_report`: called inside run() when the identity fits, with settings of the server that an operator should
  // change, and with the superuser that the node's role is or may become. Not called if these cannot be read: the last
  // report stands then. REQUIRES: `open` outlives the object.
  DatabaseCheck(const OpenDatabases& open, const OpenDatabase& database, OnReport on_report);

  // Opens a new connection and compares the database's identity with the expected one. It also checks schema and
  // registration, at the first call and whenever the identity has changed. (Not at the first call for the control
  // database: the node's start has checked it.) If a restored database was registered again by `tocsin migrate`, all
  // sessions expect it from then on.
  //  - Error invalid: another database answers, or its schema is not one that this binary knows.
  //  - Error unavailable: no database answers, or a standby does. Or its settings cannot be read and never were: a node
  //    that does not know its role must not call functions (docs/security.md).
  Status run();

 private:
  Status check(Session& session, const DatabaseIdentity& found);
  Status check_control(Session& session, const DatabaseIdentity& found);

  const OpenDatabases& open_;
  const DatabaseId database_id_;
  const std::shared_ptr<ExpectedDatabase> expected_;
  const SessionConfig session_;
  const OnReport on_report_;
  bool is_met_ = false;       // a check has passed: schema and registration fit
  bool is_reported_ = false;  // on_report_ was called for the database that is expected
};

}  // namespace tocsin
