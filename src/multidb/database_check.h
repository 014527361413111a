// Checks whether the registered database answers at an address (ADR 0013): another one may have been promoted or
// restored there. Called by housekeeping, at the first connection and regularly afterwards.
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
  // `open` outlives it. `on_report`: is told each time what was found out about the server.
  DatabaseCheck(const OpenDatabases& open, const OpenDatabase& database, OnReport on_report);

  // One that was restored and is recorded anew by `migrate` becomes the expected one. Error invalid: it is another one;
  // unavailable: it does not answer, or takes no writes.
  Status run();

 private:
  Status check(Session& session, const DatabaseIdentity& found);
  Status check_control(Session& session, const DatabaseIdentity& found);

  const OpenDatabases& open_;
  const DatabaseId place_;
  const std::shared_ptr<ExpectedDatabase> expected_;
  const SessionConfig session_;
  const OnReport on_report_;
  bool is_met_ = false;
};

}  // namespace tocsin
