#include "node/node_backend.h"

#include <algorithm>
#include <tuple>

#include "postgres/pg_job_desk.h"

namespace tocsin {
namespace {

constexpr std::size_t kQueue = 20'000;  // requests waiting for a database thread; over it callers get 429
constexpr std::size_t kBatch = 500;     // requests that share a transaction
constexpr Duration kSilence = std::chrono::seconds(5);
constexpr Duration kStuck = std::chrono::seconds(20);  // longer than any statement may take

// Answers every request of a batch. When the batch as a whole was refused for its values, each request is tried alone,
// so that one bad request cannot fail its neighbours.
template <class Item, class Reply, class Call>
void flush(std::vector<Item>& items, const Call& call) {
  Result<std::vector<Reply>> replies = call(items);
  if (replies) {
    for (std::size_t i = 0; i < items.size(); ++i) items[i].done(std::move((*replies)[i]));
    return;
  }
  const Error error = replies.error();
  const bool is_final = items.size() == 1 || error.code == ErrorCode::in_doubt || error.code == ErrorCode::unavailable;
  for (Item& item : items) {
    if (is_final) {
      item.done(error);
      continue;
    }
    std::vector<Item> alone;
    alone.push_back(std::move(item));
    flush<Item, Reply>(alone, call);
  }
}

}  // namespace

NodeBackend::NodeBackend(NodeState state, const Clock& clock, Metrics& metrics, HandlerRegistry& handlers,
                         DatabaseEngine& engine, const Membership& membership, Permits& permits)
    : state_(std::move(state)),
      clock_(clock),
      metrics_(metrics),
      handlers_(handlers),
      engine_(engine),
      membership_(membership),
      permits_(permits),
      catalog_(std::make_shared<const TypeCatalog>()),
      pool_(state_.session, state_.shards, state_.db_pool, kQueue),
      creates_(state_.session, state_.shards, clock, kQueue, kBatch,
               [](PgJobDesk& desk, std::vector<Create> items) {
                 flush<Create, CreateReply>(items, [&](const std::vector<Create>& batch) {
                   std::vector<NewJob> jobs;
                   jobs.reserve(batch.size());
                   for (const Create& item : batch) jobs.push_back(item.job);
                   return desk.create(jobs, CreateMode::each_by_itself);
                 });
               }),
      cancels_(state_.session, state_.shards, clock, kQueue, kBatch,
               [](PgJobDesk& desk, std::vector<Cancel> items) {
                 flush<Cancel, CancelReply>(items, [&](const std::vector<Cancel>& batch) {
                   std::vector<JobId> ids;
                   for (const Cancel& item : batch) ids.push_back(item.job);
                   return desk.cancel(ids);
                 });
               }),
      hints_(state_.session, [this](const Error& error) { metrics_.failed("hints", error); }) {}

NodeBackend::~NodeBackend() { stop(); }

void NodeBackend::stop() {
  creates_.stop();
  cancels_.stop();
  pool_.stop();
  hints_.stop();
}

bool NodeBackend::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  return creates_.push({std::move(job), std::move(done)});
}

bool NodeBackend::cancel(JobId job, std::function<void(Result<CancelReply>)> done) {
  return cancels_.push({job, std::move(done)});
}

bool NodeBackend::lease(LeaseCall call) {
  const MonoTime now = clock_.now();
  return engine_.engine().ask(std::make_shared<const Poll>(
      Poll{call.type_id, call.max, call.ttr, now, now + call.wait, std::move(call.is_gone), std::move(call.done)}));
}

bool NodeBackend::post(std::function<void(Stores&)> work) { return pool_.post(std::move(work)); }

void NodeBackend::hint(JobId job, TypeId type, WallTime fire_at) {
  const EngineConfig& config = engine_.engine().shared().config;
  if (fire_at >= now() + config.lookahead + std::chrono::seconds(1)) return;
  const Candidate candidate{job, type, fire_at};
  if (engine_.owns(shard_of(job))) {
    engine_.engine().hint(candidate);
  } else {
    hints_.push(candidate);
  }
}

Status NodeBackend::refresh_types(TypeStore& registry) {
  // Drawn before the read: an older picture must not replace a newer one, or a pause that was acknowledged would end.
  const std::uint64_t read = ++type_reads_;
  auto types = registry.list(TypeStore::Removed::included);
  if (!types) return types.error();
  std::lock_guard lock(types_mutex_);
  if (read < types_shown_) return Unit{};
  types_shown_ = read;
  show_types(std::move(*types));
  return Unit{};
}

void NodeBackend::show_types(std::vector<BizType> types) {
  auto all = std::make_shared<const TypeCatalog>(types);
  catalog_.set(all);
  metrics_.set_catalog(all);
  // The engine sees only types that can run here: the jobs of others are not claimed, and another node may have their
  // handler. Removed types still run what came in under them.
  std::erase_if(types, [this](const BizType& type) { return !handlers_.can_run(type); });
  for (BizType& type : types) {
    type.is_removed = false;
    // No more than its handler can work on at once, or leases would end in its queue. Read anew every few seconds, with
    // the types: handlers learn how quick they are.
    type.room = handlers_.find(type)->room();
  }
  const auto runnable = std::make_shared<const TypeCatalog>(std::move(types));
  permits_.set_catalog(runnable);
  engine_.engine().set_catalog(runnable);
}

void NodeBackend::reload_types(Stores& stores) {
  // On failure the next round of housekeeping reads it.
  static_cast<void>(refresh_types(stores.types));
}

WallTime NodeBackend::now() const {
  const auto database_now = engine_.engine().shared().db_clock.at_least(clock_.now());
  // Before the first answer nobody asks for more than a rough time.
  return database_now ? *database_now : WallTime{};
}

Readiness NodeBackend::readiness() const {
  Readiness out{true, {}};
  const auto check = [&](const std::string& name, bool is_ok, const std::string& otherwise) {
    out.checks.emplace_back(name, is_ok ? "ok" : otherwise);
    out.is_ready = out.is_ready && is_ok;
  };
  const MonoTime now = clock_.now();
  check("database " + state_.database, now - MonoTime(Duration(last_answer_.load())) < kSilence, "does not answer");
  const auto [stage, stuck] = engine_.most_stuck();
  check("engine", stuck < kStuck,
        std::string(stage) + " has been busy for " + std::to_string(stuck.count() / 1'000'000) + " s");
  check("clock", engine_.engine().shared().db_clock.at_least(now).has_value(), "the database's clock is not known yet");
  check("accepting", !is_draining_, "draining");
  const EngineShared& shared = engine_.engine().shared();
  check("membership", membership_.view() && !shared.is_cut_off(now),
        "no heartbeat was answered for too long: it scans nothing");
  out.checks.emplace_back(
      "shards", "owns " + std::to_string(shared.shards.get()->size()) + " of " + std::to_string(state_.shards));
  // Not fatal: the scan alone finds every job within a second.
  out.checks.emplace_back("notifications", engine_.is_listening()
                                               ? "ok"
                                               : "not listening: jobs created elsewhere may be up to a second late");
  return out;
}

std::string NodeBackend::hold_reason(const Job& job) const {
  const auto catalog = catalog_.get();
  const BizType* known = catalog->find(job.type_id);
  if (!known) return "its type is not registered";
  if (known->is_paused(now())) return "its type is paused";
  if (!handlers_.can_run(*known)) return "this node has no handler for its type";
  const EngineShared& shared = engine_.engine().shared();
  if (known->is_pull() && shared.polls.demand(job.type_id) == 0)
    return "no consumer asks this node for jobs of its type";
  // As the engine knows it: with the room of its handler.
  const auto runnable = shared.catalog.get();
  if (const BizType* type = runnable->find(job.type_id)) {
    const bool is_late = job.fire_at < now() - shared.config.lookahead;
    if (std::string reason = permits_.hold_reason(*type, is_late); !reason.empty()) return reason;
  }
  if (!known->is_instant() && shared.gate.running(job.type_id) >= shared.config.max_running_per_type)
    return "this node runs " + std::to_string(shared.config.max_running_per_type) +
           " jobs of its type, as many as it takes of one";
  if (!known->is_instant() && shared.gate.running() >= shared.config.max_running)
    return "this node runs " + std::to_string(shared.config.max_running) + " jobs, as many as it takes";
  return "";
}

std::optional<int> NodeBackend::running(TypeId type) const {
  const auto catalog = catalog_.get();
  const BizType* known = catalog->find(type);
  return known ? permits_.running(*known) : std::nullopt;
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
    if (member.scan_age) info.scan_age = *member.scan_age + since;
    if (member.id == state_.node_id) info.scan_age = engine_.engine().shared().scan_age(now);
  }
  std::ranges::sort(nodes, {}, [](const NodeInfo& info) { return std::tie(info.name, info.id); });
  return nodes;
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
