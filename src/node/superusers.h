// Superusers: decides whether this node may call sql handlers: not while its role is a superuser in one of the
// databases, unless --allow-superuser-handlers is given. A function runs in a role with few rights, but one that
// escapes from it has the rights of the node's role (docs/security.md).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "postgres/registry.h"

namespace tocsin {

// Thread: any.
class Superusers {
 public:
  // `are_allowed`: NodeConfig::allow_superuser_handlers. REQUIRES: it outlives this object.
  explicit Superusers(const bool& are_allowed) : are_allowed_(are_allowed) {}

  // Records whether the node's role is a superuser in this database, until the next report; returns all warnings of the
  // report, and one more if it is, for the operator. Called after each DatabaseCheck that passed and could read the
  // report. REQUIRES: database_id < kMaxDatabases.
  std::vector<std::string> note_report(DatabaseId database_id, const ServerReport& report) {
    is_superuser_[static_cast<std::size_t>(database_id)] = !report.superuser.empty();
    auto warnings = report.warnings;
    if (!report.superuser.empty()) {
      warnings.push_back("the node's role " + report.superuser + " is a superuser: " +
                         (are_allowed_ ? "sql handlers run nevertheless (--allow-superuser-handlers), and their "
                                         "authors can become superusers"
                                       : "sql handlers do not run here; scripts/roles.sql makes a role with the "
                                         "smallest rights"));
    }
    return warnings;
  }

  // Why no sql handler may run here, as a phrase that follows "handler.kind sql"; empty: they may, also before the
  // first report.
  std::string refusal() const {
    if (are_allowed_ || std::ranges::none_of(is_superuser_, [](const auto& each) { return each.load(); })) return "";
    return "needs a node whose role is no superuser (scripts/roles.sql makes one), or --allow-superuser-handlers";
  }

 private:
  const bool& are_allowed_;
  std::array<std::atomic<bool>, kMaxDatabases> is_superuser_{};  // by database id
};

}  // namespace tocsin
