// NodeConfig: the settings of a node, which its program passes to the constructor of Node. The defaults are those of
// `tocsin serve`. Node::start() fails with Error invalid on strings that it cannot use. Counts and time-outs must be
// positive; that is not checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tocsin {

struct NodeConfig {
  std::vector<std::string> databases;  // URL or NAME=URL each; the first is the control database (members, shard map)
  std::string listen = "127.0.0.1:7070";  // HOST:PORT of the REST API; beyond loopback start() requires tokens
  std::string token_file;                 // TOML; empty: no tokens, and only this machine is served
  std::string node_name;                  // a label in logs and jobs; empty: the host's name
  // Number of shards (slices of all jobs), 1..1024. The first migration fixes it (empty: 64); later starts give the
  // same number or none.
  std::optional<int> shards;
  bool migrate_first = false;               // Node::start() creates or upgrades the schema before it connects
  bool has_dashboard = true;                // serve the dashboard at /
  std::size_t max_attribute_bytes = 65536;  // of a job's attribute, as JSON; a longer one is refused
  std::vector<std::string> allow_webhook;   // CIDRs of private addresses that webhooks and brokers may connect to
  std::string webhook_ca_file;              // PEM file; its authorities are trusted besides the system's
  int webhook_connections = 256;            // the most per endpoint (scheme, host and port)
  // Days for which finished jobs are kept, by final status; a status that is not named: for ever.
  std::map<std::string, int> retain_days = {{"done", 7}, {"cancelled", 7}, {"dead", 30}};
  std::vector<std::string> entries;  // topics whose messages become jobs, each a JSON object: docs/brokers.md
  // True: SQL handlers are called even if this node's role is a superuser; authors of handlers can then become one.
  bool allow_superuser_handlers = false;
  int api_threads = 1;  // network threads of the REST listener
  // Threads that claim due jobs, divided among the databases. Each database has one more, for types with few due jobs.
  int claimers = 2;
  // Threads for requests that are not written in batches, divided among the databases. Each thread has two connections.
  int db_pool = 4;
  // Claims do not wait for the disk: a crash of the database server may let a cancelled job start (ADR 0031).
  bool async_claims = false;
  // Threads for C++ handlers. When all are busy, a type without a running handler gets one more, up to 64 in all.
  int workers = 4;
  // SQL handlers that run at once, each with a connection. More are added as for `workers`, up to 8 in all.
  int sql_workers = 2;
  std::size_t queue_capacity = 100000;             // jobs due soon held in memory, divided among the databases
  std::chrono::milliseconds drain_timeout{20000};  // how long a node that stops waits for running handlers
  // Longest time from the death of a node until others scan its shards; a silence of 4/5 of it counts as death.
  // Every node needs the same value; that is not checked.
  std::chrono::milliseconds heartbeat_timeout{5000};
  std::string log_level = "info";   // trace, debug, info, warn, error, critical or off
  std::string log_format = "text";  // or json
};

}  // namespace tocsin
