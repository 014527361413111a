// Node::Impl: owns the parts of a node. Included only by node.cc, which starts and stops the parts in order, and by
// node_parts.cc, which makes them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/api.h"
#include "base/system_clock.h"
#include "delivery/address_guard.h"
#include "delivery/cpp_handler.h"
#include "delivery/handler_registry.h"
#include "delivery/sql_handler.h"
#include "entry/entry_consumer.h"
#include "maintenance/superusers.h"
#include "metrics/metrics.h"
#include "multidb/open_databases.h"
#include "multidb/outbox_relay.h"
#include "node/database_map.h"
#include "node/membership.h"
#include "node/node_backend.h"
#include "node/node_status.h"
#include "node/permits.h"
#include "node/type_publisher.h"
#include "tocsin/node.h"

namespace tocsin {

// Lives as long as the process: a handler that overruns its time may still use it after its node is destroyed.
inline const SystemClock process_clock;

// Thread: owner only (the thread that calls Node::start() and Node::stop()). Its many data members are the parts of a
// node, one each.
class Node::Impl {
 public:
  explicit Impl(NodeConfig config);
  ~Impl() { stop(); }

  CppHandlers& functions() { return functions_; }
  Status start();                            // as Node::start(); calls stop() before it returns an Error
  void stop();                               // as Node::stop(); also for a start() that failed half-way
  int port() const { return api_->port(); }  // REQUIRES: started

 private:
  static constexpr std::size_t kWorkQueue = 4096;  // waiting attempts per C++ handler: as many as an engine may claim

  Result<ApiConfig> api_config();
  Status open();      // migrates the databases if configured, and opens them
  Status bring_up();  // makes and starts all parts; after an Error some of them run
  Status make_entries();
  void make_handlers(const AddressGuard& guard);
  FunctionDatabases function_databases() const;
  std::unique_ptr<Database> make_database(const OpenDatabase& open);
  void make_membership();
  void make_permits();
  void make_relay();
  void make_bulk();
  void end_handlers(Duration grace);  // attempts that run after `grace` end as retry or not started
  bool stop_engines();                // false: some claimed jobs could not be released
  void add_gauges();

  NodeConfig config_;
  const NodeId id_;
  Metrics metrics_;
  CppHandlers functions_;
  Superusers superusers_{config_.allow_superuser_handlers};
  // Made by start(); no thread of the node exists before.
  std::optional<HandlerRegistry> handlers_;
  OpenDatabases open_;
  std::shared_ptr<PollQueue> polls_;
  std::unique_ptr<Permits> permits_;
  Databases databases_;
  std::unique_ptr<DatabaseMap> map_;
  std::unique_ptr<TypePublisher> types_;
  std::unique_ptr<OutboxRelay> relay_;  // with several databases
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<NodeStatus> status_;
  std::unique_ptr<BulkService> bulk_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<NodeBackend> backend_;
  std::unique_ptr<Api> api_;
  EntryCounts entry_counts_;
  std::optional<ApiContext> entry_context_;  // of the entry consumers, which create jobs as the API does
  std::vector<std::unique_ptr<EntryConsumer>> entries_;
};

}  // namespace tocsin
