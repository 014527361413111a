// /healthz, /readyz, /metrics and /v1/stats: how the node and its jobs are doing.
#include <array>
#include <map>

#include "api/fan_out.h"
#include "api/json_writer.h"
#include "api/resources.h"

namespace tocsin {
namespace {

constexpr int kOverdueCap = 10'000;  // counted exactly up to here; a count beyond it would cost what the backlog costs
constexpr std::array kStatuses{JobStatus::pending, JobStatus::running, JobStatus::done, JobStatus::cancelled,
                               JobStatus::dead};
using Counts = std::array<std::int64_t, kStatuses.size()>;

void health(const CallPtr& call) { call->reply(200, R"({"status":"ok"})"); }

// A balancer needs no more than the status; names, identities and addresses of databases are for readers.
// Without tokens every caller of this machine is an admin, and has no name.
void me(const CallPtr& call) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("name");
  call->caller.name.empty() ? out.null() : out.value(call->caller.name);
  out.field("role", call->caller.role).end_object();
  call->reply(200, std::move(text));
}

void ready(const ApiContext& context, const CallPtr& call) {
  const Readiness readiness = context.backend.readiness();
  const int status = readiness.is_ready ? 200 : 503;
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("status", !readiness.is_ready ? "not ready" : readiness.is_degraded ? "degraded" : "ready");
  if (!call->may_read) {
    out.end_object();
    return call->reply(status, std::move(text));
  }
  out.key("checks").begin_object();
  for (const auto& [name, state] : readiness.checks) out.field(name, state);
  out.end_object().key("warnings").begin_array();
  for (const std::string& warning : readiness.warnings) out.value(warning);
  out.end_array().end_object();
  call->reply(status, std::move(text));
}

void metrics(const ApiContext& context, const CallPtr& call) {
  call->respond({200, "text/plain; version=0.0.4; charset=utf-8", context.backend.metrics_text(), {}});
}

void write_counts(JsonWriter& out, const Counts& counts) {
  for (std::size_t i = 0; i < kStatuses.size(); ++i) out.field(to_string(kStatuses[i]), counts[i]);
}

struct Numbers {  // of one database
  std::vector<TypeCount> counts;
  std::int64_t overdue = 0;
};

std::string stats_text(const Backend& backend, const std::vector<DatabaseAnswer<Numbers>>& answers) {
  const auto catalog = backend.types();
  std::map<std::string, Counts> by_type;
  Counts totals{};
  for (const auto& type : catalog->types) by_type.emplace(type->name, Counts{});
  std::int64_t overdue = 0;
  for (const auto& [database_id, numbers] : answers) {
    if (!numbers) continue;
    overdue += numbers->overdue;
    for (const TypeCount& count : numbers->counts) {
      const BizType* type = catalog->find(count.type_id);
      const auto status = static_cast<std::size_t>(count.status);
      totals[status] += count.n;
      if (type != nullptr) by_type[type->name][status] += count.n;
    }
  }
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  for (const auto& [name, n] : by_type) {
    out.begin_object().field("biz_type", name);
    write_counts(out, n);
    out.end_object();
  }
  out.end_array().key("totals").begin_object();
  write_counts(out, totals);
  const LatencySummary late = backend.lateness();
  out.end_object().key("lateness_ms").begin_object();
  out.field("n", late.n)
      .field("p50", late.p50)
      .field("p90", late.p90)
      .field("p99", late.p99)
      .field("max", late.max)
      .end_object();
  out.key("backlog").begin_object().field("overdue", overdue).field("is_capped", overdue >= kOverdueCap).end_object();
  write_missing(out, backend, answers);
  out.end_object();
  return text;
}

void stats(ApiContext& context, const CallPtr& call) {
  fan_out<Numbers>(
      context, call, context.backend.database_ids(),
      [](DatabaseId, Stores& stores) -> Result<Numbers> {
        auto counts = stores.reports.counts();
        if (!counts) return counts.error();
        const auto overdue = stores.reports.overdue(kOverdueCap);
        if (!overdue) return overdue.error();
        return Numbers{std::move(*counts), *overdue};
      },
      [&context, call](const std::vector<DatabaseAnswer<Numbers>>& answers) {
        if (!refused_by_all(context, call, answers)) call->reply(200, stats_text(context.backend, answers));
      },
      0, RequestQueue::slow_reads);
}

Route read_route(std::string path, Access access, std::string operation_id, std::string summary, std::string reply,
                 std::function<void(const CallPtr&)> handler) {
  return {.method = "GET",
          .path = std::move(path),
          .access = access,
          .operation_id = std::move(operation_id),
          .tag = "Operations",
          .summary = std::move(summary),
          .replies = {{200, std::move(reply)}},
          .handler = std::move(handler)};
}

}  // namespace

std::vector<Route> operation_routes(ApiContext& context) {
  Route ready_route = read_route("/readyz", Access::open, "ready", "Whether the node can do its work", "Readiness",
                                 [&context](const CallPtr& call) { ready(context, call); });
  ready_route.replies.push_back({503, "Readiness"});
  Route stats_route = read_route("/v1/stats", Access::read, "stats", "Counts by type and status, lateness, backlog",
                                 "Stats", [&context](const CallPtr& call) { stats(context, call); });
  stats_route.errors = {429, 503};
  return {
      read_route("/healthz", Access::open, "health", "Whether the process answers", "Health", health),
      std::move(ready_route),
      read_route("/metrics", Access::read, "metrics", "Metrics in the Prometheus text format", "",
                 [&context](const CallPtr& call) { metrics(context, call); }),
      std::move(stats_route),
      read_route("/v1/me", Access::read, "me", "Name and role of the caller's token", "Me", me),
  };
}

}  // namespace tocsin
