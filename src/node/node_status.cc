#include "node/node_status.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>

namespace tocsin {
namespace {

constexpr Duration kStuck = std::chrono::seconds(20);  // longer than any statement may take

}  // namespace

// With several databases the node is ready while one of them works: the others concern only their own shards.
void NodeStatus::check_databases(Readiness& out) const {
  const MonoTime now = clock_.now();
  bool is_any_well = false;
  for (const auto& database : map_.all()) {
    const std::string name = "database " + database->name();
    const auto why = database->unavailable_reason();
    const auto [stage, stuck] = database->engine().most_stuck();
    std::string trouble;
    if (why)
      trouble = why->message;
    else if (!database->is_answering())
      trouble = "does not answer";
    else if (stuck >= kStuck)
      trouble = std::string(stage) + " has been busy for " + std::to_string(stuck.count() / 1'000'000) + " s";
    else if (!database->shared().db_clock.at_least(now))
      trouble = "its clock is not known yet";
    is_any_well = is_any_well || trouble.empty();
    // The database works, but late. The node stays ready: without it the other nodes would be even later, and creates
    // and cancels may be answered.
    if (trouble.empty() && database->shared().has_stuck_outcomes(now))
      trouble = "writes no outcomes of handlers, so this node starts no further job";
    if (trouble.empty()) trouble = database->shared().scans.trouble(now);
    out.is_degraded = out.is_degraded || !trouble.empty();
    out.checks.emplace_back(name, trouble.empty() ? "ok" : trouble);
  }
  out.is_ready = out.is_ready && is_any_well;
}

// The node cannot scan the shards in these databases.
void NodeStatus::check_map(Readiness& out) const {
  for (const auto& [database_id, n] : map_.unknown()) {
    out.is_degraded = true;
    out.checks.emplace_back(
        "database " + map_.name(database_id),
        "the shard map places " + std::to_string(n) + " shards in it; this node was not started with it");
  }
}

void NodeStatus::warn_of(DatabaseId database_id, const std::vector<std::string>& warnings) {
  MutexLock lock(warnings_mutex_);
  const auto known = std::exchange(warnings_[database_id], warnings);
  lock.unlock();
  for (const std::string& warning : warnings)
    if (std::ranges::find(known, warning) == known.end())
      spdlog::warn("database {}: {}", map_.name(database_id), warning);
  for (const std::string& warning : known)
    if (std::ranges::find(warnings, warning) == warnings.end())
      spdlog::info("database {}: no longer true: {}", map_.name(database_id), warning);
}

void NodeStatus::check_membership(Readiness& out) const {
  const bool has_view = membership_.view() != nullptr, is_only_database = map_.all().size() == 1;
  const bool is_member = has_view && !map_.control().shared().membership.is_lease_lost(clock_.now());
  out.checks.emplace_back("membership", is_member ? "ok"
                                        : is_only_database
                                            ? "the membership lease has ended: this node scans nothing"
                                            : "the control database does not answer: no shard changes its node");
  out.is_degraded = out.is_degraded || !is_member;
  out.is_ready = out.is_ready && (is_member || (!is_only_database && has_view));
}

// A node without notifications stays ready and is not degraded: the scan finds every job within a second.
void NodeStatus::check_shards(Readiness& out) const {
  std::size_t owned = 0;
  bool is_listening = true, is_answering = true;
  for (const auto& database : map_.all()) {
    owned += database->shards();
    is_listening = is_listening && database->engine().is_listening();
    is_answering = is_answering && database->is_answering();
  }
  out.checks.emplace_back("shards", "owns " + std::to_string(owned) + " of " + std::to_string(config_.shards));
  out.checks.emplace_back("notifications", !is_answering ? "waiting for a database that does not answer"
                                           : is_listening
                                               ? "ok"
                                               : "not listening: jobs created elsewhere may be up to a second late");
}

// An entry topic that does not work makes the node degraded, not unready: its messages wait with their broker.
void NodeStatus::check_entries(Readiness& out) const {
  for (const auto& entry : entries_) {
    const std::string trouble = *entry->trouble.get();
    out.checks.emplace_back("entry " + entry->target, trouble.empty() ? "ok" : trouble);
    out.is_degraded = out.is_degraded || !trouble.empty();
  }
}

Readiness NodeStatus::readiness() const {
  Readiness out{true, false, {}, {}};
  check_databases(out);
  check_map(out);
  out.checks.emplace_back("accepting", is_draining_ ? "draining" : "ok");
  out.is_ready = out.is_ready && !is_draining_;
  check_membership(out);
  check_shards(out);
  check_entries(out);
  MutexLock lock(warnings_mutex_);
  for (const auto& [database_id, warnings] : warnings_)
    for (const std::string& warning : warnings)
      out.warnings.push_back("database " + map_.name(database_id) + ": " + warning);
  return out;
}

std::vector<EndpointInfo> NodeStatus::endpoints() const {
  std::vector<EndpointInfo> all = handlers_.endpoints();
  for (const auto& entry : entries_) {
    const std::string trouble = *entry->trouble.get();
    EndpointInfo info;
    info.kind = "entry";
    info.endpoint = entry->target;
    info.state = trouble.empty() ? "ok" : "unavailable";
    info.last_error = trouble;
    all.push_back(std::move(info));
  }
  return all;
}

std::vector<ScannedDatabase> NodeStatus::scanned(MonoTime now) const {
  std::vector<ScannedDatabase> scanned;
  for (const auto& database : map_.all()) {
    // One that is not open is scanned without its shards.
    const bool is_open = !database->unavailable_reason();
    scanned.push_back({database->database_id(), is_open ? database->shared().scans.age(now) : std::nullopt});
  }
  return scanned;
}

std::vector<NodeInfo> NodeStatus::nodes() const {
  const auto view = membership_.view();
  if (!view) return {};
  const MonoTime now = clock_.now();
  const Duration since = now - view->answered;
  std::vector<NodeInfo> nodes;
  for (const SeenMember& seen : view->members) {
    const Member& member = seen.member;
    NodeInfo& info = nodes.emplace_back();
    info.id = member.id;
    info.name = member.name;
    info.version = member.version;
    info.heartbeat_age = member.heartbeat_age + since;
    info.state = info.heartbeat_age >= config_.heartbeat_timeout ? "lost" : member.is_draining ? "draining" : "active";
    for (std::size_t shard = 0; shard < view->map.owners.size(); ++shard)
      if (view->map.owners[shard] == member.id) info.shards.push_back(static_cast<Shard>(shard));
    info.scanned = member.id == config_.node_id ? scanned(now) : member.scanned;
    if (member.id != config_.node_id)
      for (ScannedDatabase& each : info.scanned)
        if (each.age) *each.age += since;
  }
  std::ranges::sort(nodes, {}, [](const NodeInfo& info) { return std::tie(info.name, info.id); });
  return nodes;
}

std::vector<MoveInfo> NodeStatus::moves() const {
  std::vector<MoveInfo> moves;
  for (const ShardMove& each : membership_.moves()) moves.push_back({each.shard, each.target, to_string(each.state)});
  return moves;
}

std::string NodeStatus::shard_owner(Shard shard) const {
  const auto view = membership_.view();
  const auto at = static_cast<std::size_t>(shard);
  if (!view || at >= view->map.owners.size()) return "";
  for (const auto& seen : view->members)
    if (seen.member.id == view->map.owners[at]) return seen.member.name;
  return "";
}

}  // namespace tocsin
