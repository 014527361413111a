#include "tocsin/node.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <random>
#include <utility>

#include "api/api.h"
#include "api/job_json.h"
#include "delivery/cpp_handler.h"
#include "delivery/handlers.h"
#include "delivery/webhook.h"
#include "node/database_engine.h"
#include "node/housekeeping.h"
#include "node/log.h"
#include "node/membership.h"
#include "node/metrics.h"
#include "node/node_backend.h"
#include "node/permits.h"
#include "node/run.h"
#include "node/system_clock.h"
#include "postgres/migrator.h"
#include "tocsin/version.h"

namespace tocsin {
namespace {

std::string host_name() {
  char name[256] = "node";
  gethostname(name, sizeof name - 1);
  return name;
}

NodeId random_id() {
  std::random_device device;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(((std::uint64_t{device()} << 32) | device()) >> 1));
}

// For as long as the process: handlers that overrun may outlive their node.
const SystemClock process_clock;

Error about(const std::string& what, const Error& error) {
  return {error.code, what + ": " + error.message, error.field};
}

// The signals that end a node. Blocked in every thread that is started afterwards, so that only sigwait() receives
// them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Thousands of consumers may hold a connection each; the usual soft limit of 1024 would stop them.
void raise_open_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 65536);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

class Node::Impl {
 public:
  explicit Impl(NodeConfig config) : config_(std::move(config)), metrics_(process_clock) {
    if (config_.node_name.empty()) config_.node_name = host_name();
  }
  ~Impl() { stop(); }

  CppHandlers& functions() { return functions_; }
  Status start();
  void stop();
  int port() const { return api_->port(); }

 private:
  static constexpr std::size_t kWorkQueue = 4096;  // as many as the engine may claim

  Result<ApiConfig> api_config() const;
  Status bring_up();
  void make_handlers();
  void make_membership(int shards);
  void make_permits();
  void end_handlers(Duration grace);
  Result<int> install();
  void add_gauges();
  SessionConfig session(const std::string& role) const;

  NodeConfig config_;
  const NodeId id_ = random_id();
  Metrics metrics_;
  CppHandlers functions_;
  // From start() on, which is when the first thread of the node may exist.
  std::optional<WorkerPool> workers_;
  std::optional<CppRunner> cpp_runner_;
  std::optional<WebhookClient> webhooks_;
  std::optional<HandlerRegistry> handlers_;
  std::unique_ptr<Permits> permits_;
  std::unique_ptr<DatabaseEngine> engine_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<NodeBackend> backend_;
  std::unique_ptr<Housekeeping> housekeeping_;
  std::unique_ptr<Api> api_;
};

SessionConfig Node::Impl::session(const std::string& role) const {
  SessionConfig session;
  session.url = config_.databases.front();
  session.application = "tocsin " + role;
  return session;
}

Result<ApiConfig> Node::Impl::api_config() const {
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

Result<int> Node::Impl::install() {
  Session setup(session("setup"));
  if (config_.migrate_first) {
    auto done = migrate(setup, config_.shards, [](const std::string& step) { spdlog::info("migrated: {}", step); });
    if (!done) return done.error();
  }
  auto installed = check_installation(setup, config_.shards);
  if (!installed) return installed.error();
  return installed->shards;
}

Status Node::Impl::start() {
  Status done = bring_up();
  if (!done) stop();  // nothing of it is left running
  return done;
}

Status Node::Impl::bring_up() {
  start_log(config_.log_level, config_.log_format);
  if (config_.databases.empty())
    return Error{ErrorCode::invalid, "a database is needed: --database URL or TOCSIN_DATABASE", "database"};
  if (config_.databases.size() > 1)
    return Error{ErrorCode::invalid, "this version serves one database; several were given", "database"};
  const auto name = database_name(config_.databases.front());
  if (!name) return name.error();
  auto api = api_config();
  if (!api) return api.error();
  auto shards = install();
  if (!shards) return about("database " + *name, shards.error());

  make_handlers();
  make_permits();
  DatabaseEngineConfig engine_config;
  engine_config.session = session("engine");
  engine_config.engine.node = config_.node_name;
  engine_config.engine.capacity = config_.queue_capacity;
  engine_config.engine.all_shards = *shards;
  engine_config.engine.flow = permits_->flow();
  engine_config.claimers = config_.claimers;
  engine_config.on_step = [this](const char* stage, Duration took) { metrics_.stepped(stage, took); };
  engine_ = std::make_unique<DatabaseEngine>(
      engine_config, process_clock, metrics_, [this](const BizType& type) { return handlers_->find(type); },
      [this] {
        if (housekeeping_) housekeeping_->reload_types();
      },
      [this] {
        if (membership_) membership_->request();
      });
  make_membership(*shards);
  backend_ = std::make_unique<NodeBackend>(
      NodeState{config_.node_name, id_, config_.heartbeat_timeout, *name, *shards, session("api"), config_.db_pool},
      process_clock, metrics_, *handlers_, *engine_, *membership_, *permits_);
  housekeeping_ = std::make_unique<Housekeeping>(
      HousekeepingConfig{session("housekeeping"), config_.retain_days}, process_clock,
      Housekeeping::Callbacks{[this](TypeStore& registry) { return backend_->refresh_types(registry); },
                              [this] { backend_->database_answered(); },
                              [this](const Error& error) { metrics_.failed("housekeeping", error); }});
  add_gauges();

  api_ = std::make_unique<Api>(*backend_, *std::move(api));
  if (auto done = webhooks_->start(); !done) return done;
  if (auto done = engine_->connect(); !done) return about("database " + *name, done.error());
  if (auto done = housekeeping_->start(); !done) return about("database " + *name, done.error());
  permits_->start();
  engine_->start();
  membership_->start();
  if (auto done = api_->start(); !done) return done;
  spdlog::info("node {} serves {} with {} shards on port {}", config_.node_name, *name, *shards, api_->port());
  return Unit{};
}

void Node::Impl::make_handlers() {
  workers_.emplace(config_.workers, kWorkQueue);
  cpp_runner_.emplace(*workers_, process_clock);
  webhooks_.emplace(
      WebhookOptions{kVersion, {}}, process_clock, [this] { return backend_->now(); },
      [this](const Job& job) { return job_text(job, *backend_->types()); });
  handlers_.emplace(*webhooks_, *cpp_runner_, functions_);
}

void Node::Impl::make_membership(int shards) {
  ClusterConfig cluster;
  cluster.id = id_;
  cluster.name = config_.node_name;
  cluster.version = kVersion;
  cluster.shards = shards;
  cluster.timeout = config_.heartbeat_timeout;
  Engine& engine = engine_->engine();
  const auto owned = [&engine](std::vector<Shard> mine) {
    spdlog::info("scans {} shards", mine.size());
    engine.set_shards(std::move(mine));
  };
  membership_ = std::make_unique<Membership>(
      cluster, session("membership"), process_clock, metrics_,
      Membership::Hooks{{[&engine](MonoTime now) { return engine.shared().scan_age(now); },
                         [&engine](MonoTime until) { engine.trust_until(until); }},
                        owned,
                        [this](const char* stage, Duration took) { metrics_.stepped(stage, took); }});
}

void Node::Impl::make_permits() {
  PermitConfig config;
  config.node = id_;
  config.ttl = config_.heartbeat_timeout;
  const auto waiting = [this](TypeId type) { return engine_ ? engine_->engine().waiting(type) : Waiting{}; };
  permits_ = std::make_unique<Permits>(config, session("permits"), process_clock, metrics_, waiting,
                                       [this](const char* stage, Duration took) { metrics_.stepped(stage, took); });
}

// Every attempt in flight ends with a retry; functions that overrun are left to themselves.
void Node::Impl::end_handlers(Duration grace) {
  if (!handlers_) return;
  workers_->stop(grace);
  cpp_runner_->stop();
  webhooks_->stop();
}

void Node::Impl::add_gauges() {
  const EngineShared& shared = engine_->engine().shared();
  metrics_.add_gauge("tocsin_owned_shards", "Shards that this node scans",
                     [&shared] { return static_cast<double>(shared.shards.get()->size()); });
  metrics_.add_gauge("tocsin_known_jobs", "Candidates in memory",
                     [&shared] { return static_cast<double>(shared.known.size()); });
  metrics_.add_gauge("tocsin_due_jobs", "Due jobs waiting for a claim",
                     [&shared] { return static_cast<double>(shared.due.size()); });
  metrics_.add_gauge("tocsin_backlog_lanes", "Lanes whose backlog is claimed straight from the table",
                     [&shared] { return static_cast<double>(shared.due.backlog_lanes()); });
  metrics_.add_gauge("tocsin_running_jobs", "Claimed jobs on this node",
                     [&shared] { return static_cast<double>(shared.gate.running()); });
  metrics_.add_gauges("tocsin_permits", "Permits of a limit that this node has; of a rate in thousandths",
                      [this] { return permits_->values([](const FlowControl::Grant& grant) { return grant.n; }); });
  metrics_.add_gauges("tocsin_permits_total", "Permits of a limit in the cluster; of a rate in thousandths",
                      [this] { return permits_->values([](const FlowControl::Grant& grant) { return grant.total; }); });
  metrics_.add_gauges("tocsin_permits_in_use", "Permits of a limit that are in use in the cluster", [this] {
    return permits_->values([](const FlowControl::Grant& grant) { return grant.in_use; });
  });
  metrics_.add_gauges("tocsin_type_paused", "1: jobs of the type do not start", [this] {
    std::vector<LabelledValue> values;
    const auto catalog = backend_->types();
    for (const auto& type : catalog->types)
      values.push_back({{{"biz_type", type->name}}, type->is_paused(backend_->now()) ? 1.0 : 0.0});
    return values;
  });
  metrics_.add_gauge("tocsin_waiting_consumers", "Consumers that wait for jobs of pull types",
                     [&shared] { return static_cast<double>(shared.polls.size()); });
  metrics_.add_gauge("tocsin_clock_uncertainty_seconds", "How far the database's clock may lie ahead of the estimate",
                     [&shared] { return std::chrono::duration<double>(shared.db_clock.uncertainty()).count(); });
}

// The stop order, in one place: refuse requests, tell waiting consumers that there is nothing, and leave the shards to
// others; scan, wheel and claims stop and what has not started is given back; handlers get their grace; outcomes are
// written; permits go back when nothing of this node runs any more, and the membership is left last.
void Node::Impl::stop() {
  if (backend_) backend_->start_draining();
  if (engine_) engine_->engine().send_consumers_home();
  if (membership_) membership_->drain();
  if (permits_) permits_->drain();
  if (api_) api_->stop(std::chrono::seconds(5));
  bool is_clean = true;
  if (engine_) {
    is_clean = engine_->stop(config_.drain_timeout, [this] {
      spdlog::warn("handlers did not end within the drain time-out: their attempts count and will be retried");
      end_handlers(Duration(0));
    });
    if (!is_clean) spdlog::warn("claimed jobs were left behind: they become due again when their leases end");
  }
  end_handlers(std::chrono::seconds(1));
  if (housekeeping_) housekeeping_->stop();
  if (backend_) backend_->stop();
  if (permits_) permits_->stop(is_clean);
  if (membership_) membership_->stop();
  api_.reset();
  housekeeping_.reset();
  backend_.reset();
  membership_.reset();
  engine_.reset();
  permits_.reset();
}

Node::Node(NodeConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Node::~Node() = default;

void Node::handle(const std::string& biz_type, CppHandler handler) {
  impl_->functions().add(biz_type, std::move(handler));
}
Status Node::start() { return impl_->start(); }
int Node::port() const { return impl_->port(); }
void Node::stop() { impl_->stop(); }

int run_until_signal(Node& node) {
  signal(SIGPIPE, SIG_IGN);
  raise_open_files();
  const sigset_t signals = block_signals();
  if (auto done = node.start(); !done) {
    const Error& error = done.error();
    std::fprintf(stderr, "tocsin: %s%s%s\n", error.field.empty() ? "" : error.field.c_str(),
                 error.field.empty() ? "" : ": ", error.message.c_str());
    return 1;
  }
  int received = 0;
  sigwait(&signals, &received);
  spdlog::info("draining");
  node.stop();
  spdlog::info("stopped");
  return 0;
}

int run_node(const NodeConfig& config) {
  Node node(config);
  return run_until_signal(node);
}

int run_migrate(const NodeConfig& config) {
  if (config.databases.empty()) {
    std::fprintf(stderr, "tocsin: database: a database is needed: --database URL or TOCSIN_DATABASE\n");
    return 1;
  }
  for (const std::string& url : config.databases) {
    SessionConfig session;
    session.url = url;
    session.application = "tocsin migrate";
    session.has_pinned_plans = false;
    Session connection(session);
    const auto name = database_name(url);
    auto done =
        migrate(connection, config.shards, [](const std::string& step) { std::printf("applied %s\n", step.c_str()); });
    if (!done) {
      std::fprintf(stderr, "tocsin: %s: %s%s\n", name ? name->c_str() : "database",
                   done.error().field.empty() ? "" : (done.error().field + ": ").c_str(), done.error().message.c_str());
      return 1;
    }
    std::printf("%s: %s\n", name ? name->c_str() : "database", *done == 0 ? "nothing to do" : "up to date");
  }
  return 0;
}

}  // namespace tocsin
