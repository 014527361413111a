#include "tocsin/node.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/random.h"
#include "base/thread_guard.h"
#include "node/log.h"
#include "node/node_impl.h"
#include "tocsin/version.h"

namespace tocsin {
namespace {

std::string host_name() {
  char name[256] = "node";
  gethostname(name, sizeof name - 1);
  return name;
}

NodeId random_id() { return std::max<std::int64_t>(1, static_cast<std::int64_t>(true_random() >> 1)); }

Error about(const std::string& what, const Error& error) {
  return {error.code, what + ": " + error.message, error.field};
}

}  // namespace

Node::Impl::Impl(NodeConfig config) : config_(std::move(config)), id_(random_id()), metrics_(process_clock) {
  if (config_.node_name.empty()) config_.node_name = host_name();
}

Result<ApiConfig> Node::Impl::api_config() {
  ApiConfig api;
  const auto colon = config_.listen.rfind(':');
  api.http.host = config_.listen.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : config_.listen.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), api.http.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size() || api.http.port < 0 ||
      api.http.port > 65535) {
    return Error{ErrorCode::invalid, "must be HOST:PORT, not '" + config_.listen + "'", "listen"};
  }
  api.http.threads = config_.api_threads;
  api.max_attribute_bytes = config_.max_attribute_bytes;
  api.version = kVersion;
  api.has_dashboard = config_.has_dashboard;
  api.on_answer = [this](const std::string& route, int status) { metrics_.answered(route, status); };
  if (!config_.token_file.empty()) {
    auto tokens = Tokens::from_file(config_.token_file);
    if (!tokens) return tokens.error();
    api.tokens = std::move(*tokens);
  }
  if (api.tokens.empty() && !is_loopback(api.http.host)) {
    return Error{ErrorCode::invalid,
                 "without tokens only a loopback address may be bound; give --token-file to serve on " + api.http.host,
                 "listen"};
  }
  return api;
}

Status Node::Impl::start() {
  Status done = bring_up();
  if (!done) stop();  // nothing of it is left running
  return done;
}

Status Node::Impl::open() {
  if (config_.migrate_first) {
    const auto log = [](const std::string& step) { spdlog::info("migration: {}", step); };
    if (auto done = migrate_databases(config_, /*may_miss=*/true, log); !done) return done;
  }
  auto open = open_databases(config_);
  if (!open) return open.error();
  for (const std::string& line : open->notices) spdlog::warn("{}", line);
  open_ = std::move(*open);
  return Unit{};
}

Status Node::Impl::bring_up() {
  start_log(config_.log_level, config_.log_format);
  auto api = api_config();
  if (!api) return api.error();
  // Without tokens only programs on this machine can write a type, and they reach loopback anyway.
  const auto guard = AddressGuard::allowing(config_.allow_webhook, api->tokens.empty());
  if (!guard) return guard.error();
  if (auto done = open(); !done) return done;

  make_handlers(*guard);
  polls_ = std::make_shared<PollQueue>(EngineConfig{}.max_polls);
  make_permits();
  for (const OpenDatabase& each : open_.databases) databases_.push_back(make_database(each));
  std::map<DatabaseId, std::string> names;
  for (const RegisteredDatabase& known : open_.registry.databases) names[known.database_id] = known.name;
  for (const OpenDatabase& each : open_.databases) names[each.database_id] = each.name;
  map_ = std::make_unique<DatabaseMap>(databases_, std::move(names), open_.registry.map);
  types_ = std::make_unique<TypePublisher>(metrics_, *handlers_, *map_, *permits_);
  make_membership();
  make_bulk();
  if (databases_.size() > 1) make_relay();
  status_ = std::make_unique<NodeStatus>(NodeStatusConfig{id_, config_.heartbeat_timeout, open_.shards}, process_clock,
                                         *handlers_, *map_, *membership_);
  backend_ = std::make_unique<NodeBackend>(config_.node_name, open_.shards,
                                           NodeParts{process_clock, metrics_, *handlers_, *map_, *types_, *polls_,
                                                     *membership_, *status_, *permits_, *bulk_, *audit_});
  if (auto done = make_entries(); !done) return done;
  add_gauges();
  handlers_->on_capacity_change([flow = permits_->flow()] { flow->notify_capacity(); });

  api_ = std::make_unique<Api>(*backend_, *std::move(api));
  // Before anything of this node shows in the cluster: a node whose port is taken must not take shards.
  if (auto done = api_->bind(); !done) return done;
  if (auto done = handlers_->start(); !done) return done;
  permits_->start();
  for (const auto& database : databases_)
    if (auto done = database->start(); !done) return about("database " + database->title(), done.error());
  if (relay_) relay_->start();
  membership_->start();
  bulk_->start();
  audit_->start();
  if (auto done = api_->start(); !done) return done;
  for (const auto& entry : entries_) entry->start();
  std::string titles;
  for (const auto& database : databases_) titles += (titles.empty() ? "" : ", ") + database->title();
  spdlog::info("node {} serves {} with {} shards on port {}", config_.node_name, titles, open_.shards, api_->port());
  return Unit{};
}

// Every attempt in flight ends with a retry; C++ functions that overrun are left running.
void Node::Impl::end_handlers(Duration grace) {
  if (handlers_) handlers_->stop(grace, process_clock);
}

// The stop order, in one place:
// - leave entry topics, refuse requests, answer waiting consumers with no jobs, give up the shards
// - fire what is due until other nodes have the shards (the new map takes several commits, each waits for the disk)
// - stop scan, wheel and claims; release claimed jobs that have not started; give handlers their grace period
// - write outcomes; answer the requests that wait for outboxes
// - return permits when nothing of this node runs any more; leave the membership last
void Node::Impl::stop() {
  if (status_) status_->start_draining();
  if (polls_) polls_->close();
  if (membership_) membership_->drain();
  if (permits_) permits_->drain();
  entries_.clear();  // may have to wait for a broker
  if (api_) api_->stop(std::chrono::seconds(5));
  if (bulk_) bulk_->stop();
  if (audit_) audit_->stop();
  if (relay_) relay_->stop();
  // No longer than the heartbeat time-out, after which they take the shards of a dead node anyway.
  if (membership_ && !membership_->wait_until_replaced(std::min(config_.drain_timeout, config_.heartbeat_timeout)))
    spdlog::warn("no other node has taken the shards of this one");
  const bool is_clean = stop_engines();
  end_handlers(std::chrono::seconds(1));
  if (backend_) backend_->stop_retries();
  for (const auto& database : databases_) database->stop_outbox_waiter();
  for (const auto& database : databases_) database->stop();
  if (permits_) permits_->stop(is_clean);
  if (membership_) membership_->stop();
  api_.reset();
  entry_context_.reset();
  backend_.reset();
  status_.reset();
  audit_.reset();
  bulk_.reset();
  membership_.reset();
  types_.reset();
  map_.reset();
  databases_.clear();
  permits_.reset();
}

// All drain at once, within one grace. Returns whether nothing that was claimed is left.
bool Node::Impl::stop_engines() {
  const MonoTime deadline = process_clock.now() + config_.drain_timeout;
  for (const auto& database : databases_) database->begin_drain();
  bool is_clean = true, is_over = false;
  for (const auto& database : databases_) {
    const Duration grace = std::max(Duration(0), deadline - process_clock.now());
    is_clean &= database->stop_engine(grace, [&] {
      if (std::exchange(is_over, true)) return;
      spdlog::warn("handlers did not end within the drain time-out: their attempts count and will be retried");
      end_handlers(Duration(0));
    });
  }
  if (!is_clean) spdlog::warn("some claimed jobs could not be released: they become due again when their leases end");
  return is_clean;
}

Node::Node(NodeConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {
  set_fatal_handler([](const char* thread, const char* why) { spdlog::critical("thread {} ends: {}", thread, why); });
}
Node::~Node() = default;

void Node::handle(const std::string& biz_type, CppHandler handler) {
  impl_->functions().add(biz_type, std::move(handler));
}
Status Node::start() { return impl_->start(); }
int Node::port() const { return impl_->port(); }
void Node::stop() { impl_->stop(); }

}  // namespace tocsin
