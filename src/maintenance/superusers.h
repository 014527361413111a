// Superusers: tells whether this node may call sql handlers. It may not while the node's role is a superuser, or a
// member of one, in one of the databases, unless --allow-superuser-handlers is given: a function runs in a role with
// few rights, but a function that breaks out of that role gets the rights of the node's role (docs/security.md). Owned
// by the node (node/node_impl.h).
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
  // `are_allowed`: NodeConfig::allow_superuser_handlers. REQUIRES: outlives this object and does not change.
  explicit Superusers(const bool& are_allowed) : are_allowed_(are_allowed) {}

  // Records whether the node's role is a superuser in this database, or a member of one. Returns the report's warnings
  // for the operator, and one more if so. Called by each DatabaseCheck (multidb/database_check.h) that could read
  // the report, on the thread of the check. No first check passes without a report. REQUIRES: database_id <
  // kMaxDatabases.
  std::vector<std::string> note_report(DatabaseId database_id, const ServerReport& report) {
    is_superuser_[static_cast<std::size_t>(database_id)] = !report.superuser.empty();
    is_known_[static_cast<std::size_t>(database_id)] = true;
    auto warnings = report.warnings;
    if (!report.superuser.empty()) {
      warnings.push_back("the node's role is a superuser, or a member of one: " + report.superuser + "; " +
                         (are_allowed_ ? "sql handlers run nevertheless (--allow-superuser-handlers), and their "
                                         "authors can become superusers"
                                       : "sql handlers do not run here; scripts/roles.sql makes a role with the "
                                         "smallest rights"));
    }
    return warnings;
  }

  // Why sql handlers must not run on this node, as a full clause; "" if they may run, and before the first report.
  std::string refusal() const {
    if (are_allowed_ || std::ranges::none_of(is_superuser_, [](const auto& each) { return each.load(); })) return "";
    return "sql handlers need a node whose role is no superuser and no member of one (scripts/roles.sql makes one), "
           "or --allow-superuser-handlers";
  }

  // Whether functions may be called in this database as far as its own report goes: one was noted, so refusal() counts
  // it. False: a database that was down at the start answers, and its first check has not passed yet.
  bool is_known(DatabaseId database_id) const {
    return are_allowed_ || is_known_[static_cast<std::size_t>(database_id)];
  }

 private:
  const bool& are_allowed_;
  std::array<std::atomic<bool>, kMaxDatabases> is_known_{};      // by database id
  std::array<std::atomic<bool>, kMaxDatabases> is_superuser_{};  // by database id
};

}  // namespace tocsin
