#include "cli/node_options.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/duration.h"

namespace tocsin {
namespace {

std::string no_host_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool is_number = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  return is_number && colon > 0 && std::stoi(port) <= 65535 ? "" : "'" + text + "' is not HOST:PORT";
}

void add_capacity_options(CLI::App& command, NodeConfig& config) {
  const auto number = [&]<class T>(const char* name, T& value, const char* what, std::type_identity_t<T> most) {
    add_number(command, name, value, what, 1, most)->group("Capacity");
  };
  number("--api-threads", config.api_threads, "Threads that speak HTTP (1)", 256);
  number("--claimers", config.claimers, "Claiming threads, one priority claimer more (2)", 256);
  number("--db-pool", config.db_pool, "Database connections for the API (4)", 256);
  number("--workers", config.workers, "Threads for in-process handlers (4)", 256);
  number("--sql-workers", config.sql_workers, "Connections for functions of sql handlers (2)", 256);
  number("--webhook-connections", config.webhook_connections, "Webhooks at once per endpoint (256)", 4096);
  command.add_flag("--async-claims", config.async_claims, "Claims do not wait for the disk")->group("Capacity");
  number("--queue-capacity", config.queue_capacity, "Candidates held in memory (100000)", 10'000'000);
  number("--max-attribute-bytes", config.max_attribute_bytes, "Largest attribute of a job (65536)", 16 << 20);
}

}  // namespace

std::map<std::string, int> parse_retain(const std::string& text) {
  std::map<std::string, int> days = NodeConfig{}.retain_days;
  std::map<std::string, int> given;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const std::size_t equals = item.find('=');
    const std::string status = item.substr(0, equals);
    if (equals == std::string::npos || !days.contains(status))
      throw BadUsage("'" + item + "' is not done=, cancelled= or dead= and a number of days, like done=7d");
    const auto length = parse_duration(std::string_view(item).substr(equals + 1));
    const auto whole = length ? std::chrono::duration_cast<std::chrono::days>(*length) : std::chrono::days(0);
    if (!length || whole != *length || whole.count() < 1 || whole.count() > 3650)
      throw BadUsage("'" + item + "': history is dropped by whole days, from 1d to 3650d");
    if (!given.emplace(status, static_cast<int>(whole.count())).second)
      throw BadUsage("'" + status + "' is given twice");
  }
  if (given.empty()) throw BadUsage("the value is empty; write for example done=7d,dead=30d");
  for (const auto& [status, n] : given) days[status] = n;
  return days;
}

void add_database_options(CLI::App& command, NodeConfig& config) {
  command.add_option("--config", "TOML file with these options as keys")->option_text("FILE")->expected(1);
  command.add_option("--database", config.databases, "[NAME=]URL; repeatable, control database first")
      ->allow_extra_args(false)
      ->option_text("URL");
  command.add_option("--shards", config.shards, "Shard count, fixed by the first migration (64)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  command.add_option("--log-level", config.log_level, "trace, debug, info, warn or error (info)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->option_text("LEVEL");
  command.add_option("--log-format", config.log_format, "text or json (text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
}

void add_node_options(CLI::App& command, NodeConfig& config) {
  add_database_options(command, config);
  command.add_option("--listen", config.listen, "Where to serve HTTP (127.0.0.1:7070)")
      ->check(no_host_port)
      ->option_text("HOST:PORT");
  command.add_flag("--migrate", config.migrate_first, "Create or upgrade the schema first");
  command.add_option("--token-file", config.token_file, "Bearer tokens and their roles")->option_text("FILE");
  command
      .add_option_function<std::string>(
          "--dashboard", [&config](const std::string& text) { config.has_dashboard = text == "on"; },
          "The page at /: on or off (on)")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("on|off");
  command.add_option("--node-name", config.node_name, "Name of this node (the host's)")->option_text("NAME");
  command.add_option("--allow-webhook", config.allow_webhook, "Private addresses jobs may go to; repeatable")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->option_text("CIDR");
  command.add_option("--webhook-ca", config.webhook_ca_file, "Certificates that webhooks trust")->option_text("FILE");
  command.add_flag("--allow-superuser-handlers", config.allow_superuser_handlers,
                   "Run sql handlers even as a superuser");
  command.add_option("--entry", config.entries, "Topic whose messages become jobs; repeatable")
      ->allow_extra_args(false)
      ->option_text("JSON");
  command
      .add_option_function<std::string>(
          "--retain",
          [&config](const std::string& text) {
            try {
              config.retain_days = parse_retain(text);
            } catch (const BadUsage& error) {
              throw CLI::ValidationError("--retain", error.what());
            }
          },
          "History kept (done=7d,cancelled=7d,dead=30d)")
      ->option_text("DAYS");
  add_duration(command, "--drain-timeout", config.drain_timeout, "Time for running jobs to end at shutdown (20s)");
  add_duration(command, "--heartbeat-timeout", config.heartbeat_timeout,
               "Silence until a node is dead, same on all (5s)", "500ms", "5m");
  add_capacity_options(command, config);
}

void check(const NodeConfig& config) {
  if (config.databases.empty()) throw BadUsage("no database: give --database URL or set TOCSIN_DATABASE");
  for (const std::string& database : config.databases)
    if (database.find_first_not_of(' ') == std::string::npos) throw BadUsage("--database is empty");
}

}  // namespace tocsin
