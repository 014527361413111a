// How the parts of a node are made of its configuration and of each other.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "api/job_json.h"
#include "delivery/plain_kinds.h"
#include "delivery/sql_handler.h"
#include "delivery/webhook.h"
#include "entry/broker_kinds.h"
#include "multidb/database_check.h"
#include "node/gauges.h"
#include "node/node_impl.h"
#include "postgres/pg_audit.h"
#include "postgres/pg_function_store.h"
#include "tocsin/version.h"

namespace tocsin {

// With several databases each database gets an equal part of the node's bounds. So eight databases cost little more
// than one, and a database that is down holds no capacity of the others.
std::unique_ptr<Database> Node::Impl::make_database(const OpenDatabase& open) {
  const auto n = open_.databases.size();
  const auto part = [n](auto whole, auto least) {
    return std::max(least, static_cast<decltype(whole)>(whole / static_cast<decltype(whole)>(n)));
  };
  DatabaseConfig config;
  config.database_id = open.database_id;
  config.name = open.name;
  config.address = open.address;
  config.is_only_database = n == 1;
  config.is_answering = open.is_answering;
  config.session = session_of(open, "tocsin");
  config.shards = open_.shards;
  config.db_pool = part(config_.db_pool, 1);
  config.retain_days = config_.retain_days;
  config.node_id = id_;
  config.engine.session = session_of(open, "tocsin engine");
  config.engine.claimers = part(config_.claimers, 1);
  config.engine.on_step = [this](const char* stage, Duration took) { metrics_.stepped(stage, took); };
  config.engine.others = {open.database_id, {}, [this](Shard shard) { return map_->database_of(shard); }};
  for (const OpenDatabase& other : open_.databases) {
    if (other.database_id != open.database_id)
      config.engine.others.sessions[other.database_id] = session_of(other, "tocsin engine");
  }
  if (n > 1) config.engine.on_outbox = [this, database_id = open.database_id] { relay_->wake(database_id); };
  EngineConfig& engine = config.engine.engine;
  engine.node = config_.node_name;
  engine.stops_without_lease = open.database_id == 0;
  engine.handover_time = 2 * config_.heartbeat_timeout;
  engine.async_claims = config_.async_claims;
  engine.flow = permits_->flow();
  engine.tell_owner = [this](const Candidate& job) { backend_->hint(job.job_id, job.type_id, job.fire_at); };
  engine.capacity = part(config_.queue_capacity, std::size_t{1});
  engine.max_running = part(engine.max_running, std::size_t{64});
  const auto check =
      std::make_shared<DatabaseCheck>(open_, open, [this, database_id = open.database_id](const ServerReport& report) {
        status_->warn_of(database_id, superusers_.note_report(database_id, report));
      });
  const auto reload = [this](Database& database, TypeStore& store) {
    return database.is_control() ? types_->refresh(store) : database.mirror(store, *types_->types());
  };
  const auto members_changed = [this] {
    if (membership_) membership_->request_heartbeat();
  };
  return std::make_unique<Database>(std::move(config), process_clock, metrics_, polls_,
                                    Database::Hooks{[this](const BizType& type) { return handlers_->find(type); },
                                                    [check] { return check->run(); }, reload, members_changed});
}

void Node::Impl::make_handlers(const AddressGuard& guard) {
  WebhookOptions webhooks;
  webhooks.version = kVersion;
  webhooks.http.max_connections = config_.webhook_connections;
  webhooks.http.ca_file = config_.webhook_ca_file;
  webhooks.http.guard = guard;
  const auto wall_now = [this] { return backend_->now(); };
  const auto write_job = [this](const Job& job) { return job_text(job, *types_->types()); };
  handlers_.emplace();
  handlers_->add(std::make_unique<NoopKind>());
  handlers_->add(std::make_unique<PullKind>());
  handlers_->add(std::make_unique<CppKind>(functions_, config_.workers, kWorkQueue, process_clock));
  handlers_->add(
      std::make_unique<SqlKind>(function_databases(), config_.sql_workers, config_.node_name, process_clock));
  handlers_->add(std::make_unique<WebhookKind>(webhooks, process_clock, wall_now, write_job));
  add_broker_kinds(*handlers_, guard, process_clock, write_job);
}

// A function is called in the database of its job.
FunctionDatabases Node::Impl::function_databases() const {
  std::vector<SessionConfig> sessions;
  std::map<DatabaseId, int> numbers;
  for (const OpenDatabase& each : open_.databases) {
    numbers.emplace(each.database_id, static_cast<int>(sessions.size()));
    sessions.push_back(session_of(each, "tocsin functions"));
  }
  FunctionDatabases functions;
  functions.count = static_cast<int>(sessions.size());
  functions.of = [this, numbers](Shard shard) {
    const auto known = numbers.find(map_->database_of(shard));
    return known == numbers.end() || !superusers_.is_known(known->first) ? -1 : known->second;
  };
  functions.name = [this](int database) { return open_.databases[static_cast<std::size_t>(database)].name; };
  functions.refusal = [this] { return superusers_.refusal(); };
  functions.connect = [sessions](int database) {
    return std::make_unique<PgFunctionStore>(sessions[static_cast<std::size_t>(database)], process_clock);
  };
  return functions;
}

Status Node::Impl::make_entries() {
  entry_context_.emplace(*backend_, config_.max_attribute_bytes);
  for (std::size_t i = 0; i < config_.entries.size(); ++i) {
    auto entry = parse_entry_topic(config_.entries[i], i);
    if (!entry) return entry.error();
    entries_.push_back(std::make_unique<EntryConsumer>(*std::move(entry), *entry_context_, entry_counts_));
  }
  if (entries_.empty()) return Unit{};
  std::vector<std::shared_ptr<const EntryState>> states;
  for (const auto& entry : entries_) states.push_back(entry->state());
  status_->watch_entries(std::move(states));
  const auto count = [this](const char* name, const char* help, const std::atomic<std::int64_t>& n) {
    metrics_.add_counter(name, help, [&n] { return static_cast<double>(n.load()); });
  };
  count("tocsin_entry_created_total", "Messages of entry topics that became jobs", entry_counts_.created);
  count("tocsin_entry_existing_total", "Messages of entry topics whose jobs existed already", entry_counts_.existing);
  count("tocsin_entry_refused_total", "Messages of entry topics that can never become jobs", entry_counts_.refused);
  metrics_.add_gauge("tocsin_entry_connected", "Entry topics that are being consumed",
                     [this] { return static_cast<double>(entry_counts_.connected.load()); });
  return Unit{};
}

void Node::Impl::make_membership() {
  ClusterConfig cluster;
  cluster.id = id_;
  cluster.name = config_.node_name;
  cluster.version = kVersion;
  cluster.shards = open_.shards;
  cluster.timeout = config_.heartbeat_timeout;
  Engine& at_control = databases_.front()->engine().engine();
  membership_ = std::make_unique<Membership>(
      cluster, open_.databases, process_clock, metrics_,
      Membership::Hooks{[this](MonoTime now) { return status_->scanned(now); },
                        [this](MonoTime until) {
                          for (const auto& database : databases_) database->engine().engine().trust_until(until);
                        },
                        [&at_control](bool is_sole_member) { at_control.set_sole_member(is_sole_member); },
                        [this](const std::vector<Shard>& mine, const ShardMap& map) {
                          spdlog::info("scans {} shards", mine.size());
                          map_->set_shards(mine, map);
                          if (relay_) relay_->set_shards(mine, map);
                        },
                        [this](const char* stage, Duration took) { metrics_.stepped(stage, took); }});
}

void Node::Impl::make_relay() {
  std::vector<RelayDatabase> databases;
  std::map<DatabaseId, Database*> at;
  for (std::size_t i = 0; i < databases_.size(); ++i) {
    Database& database = *databases_[i];
    at[database.database_id()] = &database;
    databases.push_back(
        relay_database(database.database_id(), database.name(), session_of(open_.databases[i], "tocsin")));
  }
  RelayHooks hooks;
  hooks.time_at_least = [at](DatabaseId database_id) -> std::optional<WallTime> {
    const Database& database = *at.at(database_id);
    if (!database.is_answering()) return {};
    return database.shared().db_clock.at_least(process_clock.now());
  };
  hooks.make_types_known = [this, at](DatabaseId database_id, TypeStore& types) -> Status {
    return database_id == 0 ? Unit{} : at.at(database_id)->mirror(types, *types_->types());
  };
  hooks.hint = [this](const Candidate& job) { backend_->hint(job.job_id, job.type_id, job.fire_at); };
  hooks.moved = [this] { membership_->request_heartbeat(); };
  relay_ = std::make_unique<OutboxRelay>(std::move(databases), process_clock, metrics_, std::move(hooks));
}

void Node::Impl::make_bulk() {
  std::vector<BulkSessionConfig> sessions;
  for (const OpenDatabase& each : open_.databases)
    sessions.push_back({each.database_id, session_of(each, "tocsin bulk")});
  bulk_ = std::make_unique<BulkService>(
      id_, sessions, open_.shards, process_clock,
      BulkRunner::Hooks{
          [this](const Candidate& job) { backend_->hint(job.job_id, job.type_id, job.fire_at); },
          [this](DatabaseId database_id, const Error& error) { map_->at(database_id)->report_failure("bulk", error); }},
      [this](const char* stage, Duration took) { metrics_.stepped(stage, took); });
  audit_ = std::make_unique<AuditLog>(std::make_unique<PgAudit>(session_of(open_.databases.front(), "tocsin audit")),
                                      process_clock);
}

void Node::Impl::make_permits() {
  PermitConfig config;
  config.node = id_;
  config.ttl = config_.heartbeat_timeout;
  const auto waiting = [this](TypeId type) { return backend_->waiting(type); };
  const SessionConfig session = session_of(open_.databases.front(), "tocsin permits");
  permits_ = std::make_unique<Permits>(config, session, process_clock, metrics_, waiting,
                                       [this](const char* stage, Duration took) { metrics_.stepped(stage, took); });
}

void Node::Impl::add_gauges() {
  for (KindMetric& metric : handlers_->metrics()) {
    metric.is_counter ? metrics_.add_counter(metric.name, metric.help, std::move(metric.read))
                      : metrics_.add_gauge(metric.name, metric.help, std::move(metric.read));
  }
  add_gauges_of(databases_, metrics_);
  metrics_.add_gauge("tocsin_build_info", "Always 1; the label has the version of the program", [] { return 1.0; },
                     {{"version", kVersion}});
  metrics_.add_gauge("tocsin_shards", "Shards of the installation",
                     [shards = open_.shards] { return static_cast<double>(shards); });
  metrics_.add_counter("tocsin_ids_given_twice_total", "Job ids that two jobs had; the older job got a new id", [this] {
    double n = 0;
    for (const OpenDatabase& each : open_.databases) n += static_cast<double>(each.ids_given_twice->load());
    return n;
  });
  metrics_.add_counter("tocsin_audit_entries_lost_total",
                       "Entries of the audit log that were dropped or may be missing",
                       [this] { return static_cast<double>(audit_->lost()); });
  metrics_.add_gauges("tocsin_permits", "Permits of a limit that this node has; of rates in thousandths per second",
                      [this] { return permits_->values([](const FlowControl::Grant& grant) { return grant.n; }); });
  metrics_.add_gauges("tocsin_permits_limit", "Permits of a limit in the cluster; of rates in thousandths per second",
                      [this] { return permits_->values([](const FlowControl::Grant& grant) { return grant.total; }); });
  metrics_.add_gauges("tocsin_permits_in_use", "Permits of a limit that are in use in the cluster", [this] {
    return permits_->values([](const FlowControl::Grant& grant) { return grant.in_use; });
  });
  metrics_.add_gauges("tocsin_type_paused", "1 of a type that is paused; others have no value",
                      [this] { return paused_types(*types_->types(), backend_->now()); });
  metrics_.add_gauges("tocsin_slo_target_share", "Share of first starts that a type's target wants in time",
                      [this] { return target_shares(*types_->types()); });
  metrics_.add_gauge("tocsin_waiting_consumers", "Consumers that wait for jobs of pull types",
                     [this] { return static_cast<double>(polls_->size()); });
}

}  // namespace tocsin
