#include "node/node_backend.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace tocsin {
namespace {

constexpr Duration kPatience = std::chrono::seconds(3);  // with a write-frozen shard: longer than its freeze
constexpr Duration kStuck = std::chrono::seconds(20);    // longer than any statement may take

}  // namespace

NodeBackend::NodeBackend(NodeState state, const Clock& clock, Metrics& metrics, HandlerRegistry& handlers,
                         const Databases& databases, PollQueue& polls, Membership& membership, Permits& permits,
                         BulkService& bulk, AuditLog& audit, const ShardMap& map)
    : state_(std::move(state)),
      clock_(clock),
      metrics_(metrics),
      handlers_(handlers),
      databases_(databases),
      polls_(polls),
      membership_(membership),
      permits_(permits),
      bulk_(bulk),
      audit_(audit),
      types_(metrics, handlers, databases, permits),
      database_ids_(std::make_shared<const ShardDatabases>(map.database_ids)) {
  if (databases_.size() > 1) retry_queue_.emplace();
  for (const auto& database : databases_)
    by_database_id_.at(static_cast<std::size_t>(database->database_id())) = database.get();
}

// ---- databases and shards

void NodeBackend::take_shards(const std::vector<Shard>& mine, const ShardMap& map) {
  database_ids_.set(std::make_shared<const ShardDatabases>(map.database_ids));
  for (const auto& database : databases_) {
    std::vector<Shard> there;
    std::ranges::copy_if(mine, std::back_inserter(there),
                         [&](Shard shard) { return map.database_of(shard) == database->database_id(); });
    std::vector<Shard> all;
    for (int shard = 0; shard < state_.shards; ++shard)
      if (map.database_of(static_cast<Shard>(shard)) == database->database_id())
        all.push_back(static_cast<Shard>(shard));
    database->set_shards(std::move(there), std::move(all));
  }
}

std::vector<DatabaseId> NodeBackend::database_ids() const {
  std::vector<DatabaseId> database_ids;
  for (const auto& database : databases_) database_ids.push_back(database->database_id());
  return database_ids;
}

DatabaseId NodeBackend::database_of(Shard shard) const {
  const auto database_ids = database_ids_.get();
  const auto at = static_cast<std::size_t>(shard);
  return at < database_ids->size() ? (*database_ids)[at] : 0;
}

std::string NodeBackend::database_name(DatabaseId database_id) const {
  const auto known = state_.database_names.find(database_id);
  return known == state_.database_names.end() ? "number " + std::to_string(database_id) : known->second;
}

std::string NodeBackend::database_title(DatabaseId database_id) const {
  const Database* database = at(database_id);
  return database ? database->title() : database_name(database_id);
}

std::optional<Error> NodeBackend::unavailable_reason(DatabaseId database_id) const {
  const Database* database = at(database_id);
  if (!database)
    return Error{ErrorCode::unavailable,
                 "this node was not started with it; start it with all databases of the shard map", ""};
  return database->unavailable_reason();
}

bool NodeBackend::is_answering(DatabaseId database_id) const {
  const Database* database = at(database_id);
  return database && database->is_answering();
}

// ---- requests

bool NodeBackend::queue_retry(MonoTime until, std::function<void()> attempt) {
  membership_.request();  // the map may be a new one
  return clock_.now() < until && retry_queue_->push(std::move(attempt));
}

bool NodeBackend::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  const MonoTime until = retry_queue_ ? clock_.now() + kPatience : MonoTime::min();
  return create_until(until, std::move(job), std::move(done));
}

bool NodeBackend::create_until(MonoTime until, NewJob job, std::function<void(Result<CreateReply>)> answer) {
  std::function<void(Result<CreateReply>)> done = std::move(answer);
  if (retry_queue_) {
    done = [this, job, until, caller = std::move(done)](Result<CreateReply> reply) {
      if (!reply && reply.error().code == ErrorCode::moved && queue_retry(until, [this, job, until, caller] {
            if (!create_until(until, job, caller)) caller(too_many_requests());
          }))
        return;
      caller(std::move(reply));
    };
  }
  const DatabaseId database_id = database_of(shard_of(job.biz_id, state_.shards));
  if (const auto why = unavailable_reason(database_id)) return done(*why), true;
  Database& database = *at(database_id);
  if (database.has_type(job.type_id)) return database.create(std::move(job), std::move(done));
  return database.post([this, &database, job = std::move(job), done = std::move(done)](Stores& stores) {
    if (auto known = make_types_known(stores); !known) return done(known.error());
    if (!database.create(job, done)) done(too_many_requests());
  });
}

namespace {

// A job of a write-frozen shard looks like one that another transaction holds locked.
bool may_be_moving(const Result<CancelReply>& reply) { return reply && reply->kind == CancelReply::Kind::locked; }
bool may_be_moving(const Result<ChangeReply>& reply) { return reply && reply->kind == ChangeReply::Kind::locked; }
bool may_be_moving(const Result<KeyCancelReply>& reply) {
  return reply && !reply->locked.empty() && reply->cancelled.empty();
}

}  // namespace

template <class Request, class Reply>
bool NodeBackend::post_change(Shard shard, Request request, std::function<void(Result<Reply>)> done) {
  const MonoTime until = retry_queue_ ? clock_.now() + kPatience : MonoTime::min();
  return change_until<Request, Reply>(until, shard, std::move(request), std::move(done), false);
}

template <class Request, class Reply>
bool NodeBackend::change_until(MonoTime until, Shard shard, Request request, std::function<void(Result<Reply>)> answer,
                               bool is_retry) {
  std::function<void(Result<Reply>)> done = std::move(answer);
  if (retry_queue_) {
    done = [this, shard, request, until, caller = std::move(done)](Result<Reply> reply) {
      if (may_be_moving(reply) && queue_retry(until, [this, shard, request, until, caller] {
            if (!change_until<Request, Reply>(until, shard, request, caller, true)) caller(too_many_requests());
          }))
        return;
      caller(std::move(reply));
    };
  }
  const DatabaseId database_id = database_of(shard);
  if (const auto why = unavailable_reason(database_id)) return done(*why), true;
  return at(database_id)->change({Asked<Request, Reply>{std::move(request), std::move(done)}}, is_retry);
}

bool NodeBackend::cancel(JobId job, std::function<void(Result<CancelReply>)> done) {
  return post_change<JobId, CancelReply>(shard_of(job), job, std::move(done));
}

bool NodeBackend::cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) {
  const Shard shard = shard_of(key.biz_id, state_.shards);
  return post_change<KeyCancel, KeyCancelReply>(shard, std::move(key), std::move(done));
}

bool NodeBackend::change(PendingChange wanted, std::function<void(Result<ChangeReply>)> done) {
  const Shard shard = shard_of(wanted.job);
  return post_change<PendingChange, ChangeReply>(shard, wanted, std::move(done));
}

bool NodeBackend::retry(JobId job, std::function<void(Result<ChangeReply>)> done) {
  const DatabaseId database_id = database_of(shard_of(job));
  if (const auto why = unavailable_reason(database_id)) return done(*why), true;
  return at(database_id)->change({RetryAsked{job, std::move(done)}}, false);
}

template <class Request, class Reply>
bool NodeBackend::post_lookup(Shard shard, Request request, std::function<void(Result<Reply>)> done) {
  const DatabaseId database_id = database_of(shard);
  if (const auto why = unavailable_reason(database_id)) return done(*why), true;
  return at(database_id)->read(Asked<Request, Reply>{std::move(request), std::move(done)});
}

bool NodeBackend::get(JobId job, std::function<void(Result<std::optional<Job>>)> done) {
  return post_lookup<JobId, std::optional<Job>>(shard_of(job), job, std::move(done));
}

bool NodeBackend::list_key(KeyQuery query, std::function<void(Result<KeyList>)> done) {
  const Shard shard = shard_of(query.biz_id, state_.shards);
  return post_lookup<KeyQuery, KeyList>(shard, std::move(query), std::move(done));
}

bool NodeBackend::lease(LeaseCall call) {
  const MonoTime now = clock_.now();
  return polls_.add(std::make_shared<const Poll>(
      Poll{call.type_id, call.max, call.ttr, now, now + call.wait, std::move(call.is_gone), std::move(call.done)}));
}

void NodeBackend::note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) {
  const MonoTime ends = clock_.now() + ttr;
  for (const Lease& lease : leases) permits_.flow()->leases().extend(type, lease, ends);
}

void NodeBackend::hint(JobId job, TypeId type, WallTime fire_at) {
  if (Database* database = at(database_of(shard_of(job)))) database->hint({job, type, fire_at});
}

// ---- types

// On failure the next round of housekeeping reads it.
Status NodeBackend::reload_types(Stores& stores) {
  if (stores.database_id == 0) return types_.refresh(stores.types);
  control().reload_types();
  return Unit{};
}

Status NodeBackend::make_types_known(Stores& stores) {
  return stores.database_id == 0 ? Unit{} : at(stores.database_id)->mirror(stores.types, *types_.types());
}

void NodeBackend::mirror_types(std::function<void()> done) {
  // Calls `done` when the last database that was asked has finished; housekeeping updates those that are down.
  struct AtTheEnd {
    explicit AtTheEnd(std::function<void()> what) : call(std::move(what)) {}
    ~AtTheEnd() { call(); }
    std::function<void()> call;
  };
  const auto last = std::make_shared<AtTheEnd>(std::move(done));
  for (const auto& database : databases_) {
    if (database->is_control() || !database->is_answering()) continue;
    database->post([this, last](Stores& stores) { static_cast<void>(make_types_known(stores)); });
  }
}

Waiting NodeBackend::waiting(TypeId type) const {
  Waiting all;
  for (const auto& database : databases_) {
    const Waiting here = database->engine().engine().waiting(type);
    all.fresh += here.fresh;
    all.late += here.late;
  }
  const auto catalog = types_.types();
  const BizType* known = catalog->find(type);
  if (!known || !known->is_pull()) return all;
  // Every node sees all due jobs of a pull type; permits are for the node that has the consumers.
  return {std::min(all.fresh + all.late, polls_.demand(type)), 0};
}

WallTime NodeBackend::now() const {
  // Any database's clock serves while the control database's is unknown: only a rough time is needed then.
  for (const auto& database : databases_) {
    if (const auto now = database->shared().db_clock.at_least(clock_.now())) return *now;
  }
  return {};
}

// ---- state of the node

// With one database, what it lacks the node lacks; of several, each lacks only its own part.
void NodeBackend::check_databases(Readiness& out) const {
  const MonoTime now = clock_.now();
  bool is_any_well = false;
  for (const auto& database : databases_) {
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
    // It works, but late: a load balancer that left this node out would make that worse.
    if (trouble.empty()) trouble = database->shared().scans.trouble(now);
    out.is_degraded = out.is_degraded || !trouble.empty();
    out.checks.emplace_back(name, trouble.empty() ? "ok" : trouble);
  }
  out.is_ready = out.is_ready && is_any_well;
}

// Databases that the map names and this node was not started with: it cannot scan their shards.
void NodeBackend::check_map(Readiness& out) const {
  std::map<DatabaseId, int> unknown;
  for (const DatabaseId database_id : *database_ids_.get())
    if (!at(database_id)) ++unknown[database_id];
  for (const auto& [database_id, n] : unknown) {
    out.is_degraded = true;
    out.checks.emplace_back(
        "database " + database_name(database_id),
        "the shard map places " + std::to_string(n) + " shards in it; this node was not started with it");
  }
}

void NodeBackend::warn_of(DatabaseId database_id, const std::vector<std::string>& warnings) {
  MutexLock lock(warnings_mutex_);
  const auto known = std::exchange(warnings_[database_id], warnings);
  lock.unlock();
  for (const std::string& warning : warnings)
    if (std::ranges::find(known, warning) == known.end())
      spdlog::warn("database {}: {}", database_name(database_id), warning);
  for (const std::string& warning : known)
    if (std::ranges::find(warnings, warning) == warnings.end())
      spdlog::info("database {}: no longer true: {}", database_name(database_id), warning);
}

Readiness NodeBackend::readiness() const {
  Readiness out{true, false, {}, {}};
  check_databases(out);
  check_map(out);
  out.checks.emplace_back("accepting", is_draining_ ? "draining" : "ok");
  out.is_ready = out.is_ready && !is_draining_;
  const bool is_member = membership_.view() && !control().shared().membership.is_lease_lost(clock_.now());
  out.checks.emplace_back("membership", is_member ? "ok"
                                        : databases_.size() == 1
                                            ? "the membership lease has ended: this node scans nothing"
                                            : "the control database does not answer: no shard changes its node");
  out.is_degraded = out.is_degraded || !is_member;
  out.is_ready = out.is_ready && (is_member || (databases_.size() > 1 && membership_.view()));
  std::size_t owned = 0;
  bool is_listening = true, is_answering = true;
  for (const auto& database : databases_) {
    owned += database->shards();
    is_listening = is_listening && database->engine().is_listening();
    is_answering = is_answering && database->is_answering();
  }
  out.checks.emplace_back("shards", "owns " + std::to_string(owned) + " of " + std::to_string(state_.shards));
  // Not fatal: the scan alone finds every job within a second.
  out.checks.emplace_back("notifications", !is_answering ? "waiting for a database that does not answer"
                                           : is_listening
                                               ? "ok"
                                               : "not listening: jobs created elsewhere may be up to a second late");
  // Not fatal, nor the part of one database: messages wait with their broker.
  for (const auto& entry : entries_) {
    const std::string trouble = *entry->trouble.get();
    out.checks.emplace_back("entry " + entry->target, trouble.empty() ? "ok" : trouble);
    out.is_degraded = out.is_degraded || !trouble.empty();
  }
  MutexLock lock(warnings_mutex_);
  for (const auto& [database_id, warnings] : warnings_)
    for (const std::string& warning : warnings)
      out.warnings.push_back("database " + database_name(database_id) + ": " + warning);
  return out;
}

std::vector<EndpointInfo> NodeBackend::endpoints() const {
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

std::string NodeBackend::hold_reason(const Job& job) const {
  const auto catalog = types_.types();
  const BizType* known = catalog->find(job.type_id);
  if (!known) return "its type is not registered";
  if (known->is_paused(now())) return "its type is paused";
  if (!handlers_.can_run(*known)) return "this node has no handler for its type";
  if (std::string reason = handlers_.find(*known)->hold_reason(); !reason.empty()) return reason;
  if (known->is_pull() && polls_.demand(job.type_id) == 0) return "no consumer asks this node for jobs of its type";
  const bool is_any = job.job_id == 0;
  const Database* database = is_any ? databases_.front().get() : at(database_of(shard_of(job.job_id)));
  if (!database) return "this node was not started with its database";
  const EngineShared& shared = database->shared();
  // The engine's copy of the type, which has the pool of its handler.
  const auto runnable = shared.catalog.get();
  if (const BizType* type = runnable->find(job.type_id)) {
    const bool is_late = job.fire_at < now() - shared.config.lookahead;
    if (std::string reason = permits_.hold_reason(*type, is_late); !reason.empty()) return reason;
  }
  if (known->is_instant() || (is_any && databases_.size() > 1)) return "";
  const std::string here = databases_.size() == 1 ? "" : " from its database";
  if (shared.limiter.running() >= shared.config.max_running)
    return "this node runs " + std::to_string(shared.config.max_running) + " jobs" + here + ", its limit";
  const std::size_t of_type = shared.limiter.running(job.type_id), share = shared.limiter.share();
  if (of_type > 0 && of_type >= share)
    return "this node runs " + std::to_string(of_type) + " jobs of its type" + here +
           ", its limit for one type while it runs " + std::to_string(shared.limiter.running()) + " in all";
  return "";
}

std::optional<int> NodeBackend::running(TypeId type) const {
  const auto catalog = types_.types();
  const BizType* known = catalog->find(type);
  return known ? permits_.running(*known) : std::nullopt;
}

std::vector<ScannedDatabase> NodeBackend::scanned(MonoTime now) const {
  std::vector<ScannedDatabase> scanned;
  for (const auto& database : databases_)
    scanned.push_back({database->database_id(), database->shared().scans.age(now)});
  return scanned;
}

std::vector<NodeInfo> NodeBackend::nodes() const {
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
    info.state = info.heartbeat_age >= state_.heartbeat_timeout ? "lost" : member.is_draining ? "draining" : "active";
    for (std::size_t shard = 0; shard < view->map.owners.size(); ++shard)
      if (view->map.owners[shard] == member.id) info.shards.push_back(static_cast<Shard>(shard));
    info.scanned = member.id == state_.node_id ? scanned(now) : member.scanned;
    if (member.id != state_.node_id)
      for (ScannedDatabase& each : info.scanned)
        if (each.age) *each.age += since;
  }
  std::ranges::sort(nodes, {}, [](const NodeInfo& info) { return std::tie(info.name, info.id); });
  return nodes;
}

std::vector<MoveInfo> NodeBackend::moves() const {
  std::vector<MoveInfo> moves;
  for (const ShardMove& each : membership_.moves()) moves.push_back({each.shard, each.target, to_string(each.state)});
  return moves;
}

std::string NodeBackend::shard_owner(Shard shard) const {
  const auto view = membership_.view();
  const auto at = static_cast<std::size_t>(shard);
  if (!view || at >= view->map.owners.size()) return "";
  for (const auto& seen : view->members)
    if (seen.member.id == view->map.owners[at]) return seen.member.name;
  return "";
}

}  // namespace tocsin
