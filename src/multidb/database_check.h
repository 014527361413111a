// Checks whether the registered database answers at an address (ADR 0013): another one may have been promoted or
// restored there. Called on the housekeeping thread of the database, at every new connection and regularly.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multidb/open_databases.h"

namespace tocsin {

// Thread: owner only.
class DatabaseCheck {
 public:
  using OnReport = std::function<void(const ServerReport&)>;
  // `on_report`: called with the server's settings that an operator should know, after each check that passed.
  // REQUIRES: `open` outlives it.
  DatabaseCheck(const OpenDatabases& open, const OpenDatabase& database, OnReport on_report);

  // Opens a connection of its own. A restored database that `migrate` has registered again becomes the expected one.
  // Error invalid: another database answers, or a schema that this binary does not know; unavailable: none answers, or
  // it is read-only.
  Status run();

 private:
  Status check(Session& session, const DatabaseIdentity& found);
  Status check_control(Session& session, const DatabaseIdentity& found);

  const OpenDatabases& open_;
  const DatabaseId database_id_;
  const std::shared_ptr<ExpectedDatabase> expected_;
  const SessionConfig session_;
  const OnReport on_report_;
  bool is_met_ = false;  // a check has passed
};

}  // namespace tocsin
