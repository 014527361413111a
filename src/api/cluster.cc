// /v1/nodes, /v1/shards and /v1/endpoints: who belongs to the cluster, who scans what, and how the peers of this node
// are doing.
#include <algorithm>
#include <map>
#include <vector>

#include "api/fan_out.h"
#include "api/json_writer.h"
#include "api/page.h"
#include "api/query.h"
#include "api/resources.h"

namespace tocsin {
namespace {

constexpr int kDueSoonCap = 10'000;  // counted exactly up to here
constexpr Duration kSoon = std::chrono::seconds(5);

std::int64_t in_milliseconds(Duration length) { return length.count() / 1000; }

// The key by which the list is sorted.
std::string node_key(const NodeInfo& node) { return node.name + '/' + std::to_string(node.id); }

void nodes(const ApiContext& context, const CallPtr& call) {
  PageRequest page;
  if (const auto problem = read_page_request(*call, "node", page)) return call->refuse(*problem);
  auto all = context.backend.nodes();
  std::ranges::sort(all, {}, node_key);
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  auto next = std::ranges::upper_bound(all, page.after, {}, node_key);
  for (int n = 0; n < page.limit && next != all.end(); ++n, ++next) {
    const NodeInfo& node = *next;
    out.begin_object().field("node", node.name).field("id", std::to_string(node.id)).field("state", node.state);
    out.field("heartbeat_age_ms", in_milliseconds(node.heartbeat_age))
        .field("shards", node.shards.size())
        .field("version", node.version)
        .end_object();
  }
  end_page(out, "node", next == all.end() ? std::nullopt : std::optional(node_key(*std::prev(next))));
  call->reply(200, std::move(text));
}

std::string endpoint_key(const EndpointInfo& peer) { return peer.kind + ' ' + peer.endpoint; }

void write_endpoint(JsonWriter& out, const EndpointInfo& peer) {
  out.begin_object().field("kind", peer.kind).field("endpoint", peer.endpoint).field("state", peer.state);
  out.field("in_flight", peer.in_flight).field("limit", peer.limit).key("mean_ms");
  peer.mean ? out.value(std::chrono::duration<double, std::milli>(*peer.mean).count()) : out.null();
  out.field("pause_left_ms", in_milliseconds(peer.pause_left)).key("last_error");
  peer.last_error.empty() ? out.null() : out.value(peer.last_error);
  out.key("last_error_age_ms");
  peer.error_age ? out.value(in_milliseconds(*peer.error_age)) : out.null();
  out.end_object();
}

// Types may share a broker, each with a connection of its own. Their rows have the same key, so they stay on one page.
void endpoints(const ApiContext& context, const CallPtr& call) {
  PageRequest page;
  if (const auto problem = read_page_request(*call, "endpoint", page)) return call->refuse(*problem);
  auto all = context.backend.endpoints();
  std::ranges::sort(all, {}, endpoint_key);
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("node", context.backend.node_name()).key("items").begin_array();
  auto next = std::ranges::upper_bound(all, page.after, {}, endpoint_key);
  for (int n = 0; next != all.end(); ++n, ++next) {
    if (n >= page.limit && endpoint_key(*next) != endpoint_key(*std::prev(next))) break;
    write_endpoint(out, *next);
  }
  end_page(out, "endpoint", next == all.end() ? std::nullopt : std::optional(endpoint_key(*std::prev(next))));
  call->reply(200, std::move(text));
}

using DueSoon = std::vector<std::pair<Shard, std::int64_t>>;  // of one database

std::optional<std::int64_t> due_soon(const std::vector<DatabaseAnswer<DueSoon>>& answers, Shard shard) {
  for (const auto& [database_id, due] : answers) {
    if (!due) continue;
    for (const auto& [counted, n] : *due)
      if (counted == shard) return n;
  }
  return {};
}

// Milliseconds since the owner last scanned its shards in this database.
std::optional<std::int64_t> scanned_age(const NodeInfo& owner, DatabaseId database_id) {
  for (const ScannedDatabase& each : owner.scanned)
    if (each.database_id == database_id && each.age) return in_milliseconds(*each.age);
  return {};
}

std::string shards_text(const Backend& backend, const std::vector<Shard>& page,
                        const std::vector<DatabaseAnswer<DueSoon>>& answers) {
  const std::vector<NodeInfo> all = backend.nodes();
  const std::vector<MoveInfo> moves = backend.moves();
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < page.size(); ++i) {
    const auto owner = std::ranges::find_if(
        all, [&](const NodeInfo& node) { return std::ranges::binary_search(node.shards, page[i]); });
    const bool is_owned = owner != all.end();
    const DatabaseId database_id = backend.database_of(page[i]);
    out.begin_object().field("shard", page[i]).field("database", backend.database_name(database_id));
    out.field("node", is_owned ? std::optional(owner->name) : std::nullopt);
    out.field("scanned_age_ms", is_owned ? scanned_age(*owner, database_id) : std::nullopt);
    out.field("pending_due_soon", due_soon(answers, page[i]));
    if (const auto move = std::ranges::find(moves, page[i], &MoveInfo::shard); move != moves.end())
      out.key("move")
          .begin_object()
          .field("to", backend.database_name(move->target))
          .field("state", move->state)
          .end_object();
    out.end_object();
  }
  out.end_array().key("next_cursor");
  const bool has_more = !page.empty() && page.back() + 1 < backend.shards();
  has_more ? out.value(page_cursor("shard", std::to_string(page.back()))) : out.null();
  write_missing(out, backend, answers);
  out.end_object();
  return text;
}

void shards(ApiContext& context, const CallPtr& call) {
  PageRequest asked;
  if (const auto problem = read_page_request(*call, "shard", asked)) return call->refuse(*problem);
  const std::int64_t n = context.backend.shards(), last = number_from(asked.after).value_or(-1);
  if (!asked.after.empty() && (last < 0 || last >= n - 1))
    return call->refuse({400, "Must be a next_cursor of this list.", "cursor"});
  std::vector<Shard> page;
  for (std::int64_t shard = last + 1; shard < std::min(n, last + 1 + asked.limit); ++shard)
    page.push_back(static_cast<Shard>(shard));
  std::map<DatabaseId, std::vector<Shard>> by_database;
  for (const Shard shard : page) by_database[context.backend.database_of(shard)].push_back(shard);
  fan_out<DueSoon>(
      context, call, databases_of(by_database),
      [by_database](DatabaseId database_id, Stores& stores) -> Result<DueSoon> {
        const std::vector<Shard>& shards_there = by_database.at(database_id);
        const auto counts = stores.reports.due_soon(shards_there, kSoon, kDueSoonCap, true);
        if (!counts) return counts.error();
        DueSoon due;
        for (std::size_t i = 0; i < shards_there.size(); ++i) due.emplace_back(shards_there[i], (*counts)[i]);
        return due;
      },
      [&context, call, page](const std::vector<DatabaseAnswer<DueSoon>>& answers) {
        if (!refused_by_all(context, call, answers)) call->reply(200, shards_text(context.backend, page, answers));
      },
      0, RequestQueue::slow_reads);
}

}  // namespace

std::vector<Route> cluster_routes(ApiContext& context) {
  return {
      {.method = "GET",
       .path = "/v1/nodes",
       .access = Access::read,
       .operation_id = "listNodes",
       .tag = "Operations",
       .summary = "The nodes of the cluster",
       .query = page_parameters("Nodes"),
       .replies = {{200, "NodePage"}},
       .handler = [&context](const CallPtr& call) { nodes(context, call); }},
      {.method = "GET",
       .path = "/v1/endpoints",
       .access = Access::read,
       .operation_id = "listEndpoints",
       .tag = "Operations",
       .summary = "What this node delivers to and takes messages from, and how each is doing",
       .query = page_parameters("Endpoints"),
       .replies = {{200, "EndpointPage"}},
       .handler = [&context](const CallPtr& call) { endpoints(context, call); }},
      {.method = "GET",
       .path = "/v1/shards",
       .access = Access::read,
       .operation_id = "listShards",
       .tag = "Operations",
       .summary = "The shards, and who scans them",
       .query = page_parameters("Shards"),
       .replies = {{200, "ShardPage"}},
       .errors = {429, 503},
       .handler = [&context](const CallPtr& call) { shards(context, call); }},
  };
}

}  // namespace tocsin
