// Node::Impl: the parts of a node, and the order in which they start and stop. Included only by node.cc, which starts
// and stops the parts, and by node_parts.cc, which makes them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/api.h"
#include "delivery/address_guard.h"
#include "delivery/cpp_handler.h"
#include "delivery/handlers.h"
#include "delivery/sql_handler.h"
#include "entry/entry_consumer.h"
#include "metrics/metrics.h"
#include "multidb/open_databases.h"
#include "multidb/outbox_relay.h"
#include "node/database.h"
#include "node/membership.h"
#include "node/node_backend.h"
#include "node/permits.h"
#include "node/superusers.h"
#include "node/system_clock.h"
#include "tocsin/node.h"

namespace tocsin {

// Lives as long as the process, because handlers that overrun may outlive their node.
inline const SystemClock process_clock;

// Thread: owner only. Its data members are the parts of a node, one each, in the order in which they are made.
class Node::Impl {
 public:
  explicit Impl(NodeConfig config);
  ~Impl() { stop(); }

  CppHandlers& functions() { return functions_; }
  Status start();
  void stop();
  int port() const { return api_->port(); }

 private:
  static constexpr std::size_t kWorkQueue = 4096;  // attempts waiting for a C++ handler: as many as an engine may claim

  Result<ApiConfig> api_config();
  Status open();
  Status bring_up();
  Status make_entries();
  void make_handlers(const AddressGuard& guard);
  FunctionDatabases function_databases() const;
  std::unique_ptr<Database> make_database(const OpenDatabase& open);
  void make_membership();
  void make_permits();
  void make_relay();
  void make_bulk();
  void end_handlers(Duration grace);  // every attempt still in flight then ends with a retry
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
  std::unique_ptr<OutboxRelay> relay_;  // with several databases
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<BulkService> bulk_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<NodeBackend> backend_;
  std::unique_ptr<Api> api_;
  EntryCounts entry_counts_;
  std::optional<ApiContext> entry_context_;  // of the entry consumers, which create jobs as the API does
  std::vector<std::unique_ptr<EntryConsumer>> entries_;
};

}  // namespace tocsin
