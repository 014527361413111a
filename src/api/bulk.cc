// /v1/bulk: one action applied to every job that matches a filter.

#include "api/job_json.h"
#include "api/json_writer.h"
#include "api/resources.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

constexpr std::int64_t kMostDelayMs = kMaxDelay / std::chrono::milliseconds(1);
constexpr std::int64_t kMostSpreadMs = 366LL * 24 * 3600 * 1000;
constexpr std::size_t kMostReasonBytes = 1000;
constexpr int kMostListed = 100;

struct BulkCall {
  BulkRequest request;
  std::string biz_type;
  bool is_dry_run = false;
  std::optional<std::int64_t> expected;
};

void write_bulk(JsonWriter& out, const Bulk& bulk) {
  const BulkRequest& request = bulk.request;
  out.begin_object().field("bulk_id", std::to_string(bulk.bulk_id)).field("action", to_string(request.action));
  out.field("state", to_string(bulk.state)).field("matched", bulk.matched).field("changed", bulk.changed);
  out.field("missed", bulk.missed()).field("is_stopping", bulk.is_stop_requested && !bulk.finished_at);
  out.key("filter").raw(request.filter_json).field("rate_per_s", request.rate_per_s).field("reason", request.reason);
  out.field("actor", request.actor).field("started_at", rfc3339(bulk.started_at));
  out.key("finished_at");
  bulk.finished_at ? out.value(rfc3339(*bulk.finished_at)) : out.null();
  out.key("error");
  bulk.error.empty() ? out.null() : out.value(bulk.error);
  out.end_object();
}

void read_bulk_filter(JsonObject& in, BulkCall& bulk) {
  in.require("filter");
  auto filter = in.object("filter");
  if (!filter) return;
  BulkFilter& wanted = bulk.request.filter;
  bulk.biz_type = filter->string("biz_type", 1, 128).value_or("");
  wanted.biz_id = filter->string_or_number("biz_id", 1, kMaxBizIdBytes);
  wanted.from = filter->time("from");
  wanted.to = filter->time("to");
  wanted.reason = filter->string("reason", 0, kMostReasonBytes);
  const auto status = filter->string("status", 1, 16);
  const auto changed = status_changed_by(bulk.request.action);
  if (status && *status != to_string(changed)) {
    filter->fail("status",
                 "The action " + std::string(to_string(bulk.request.action)) + " changes " +
                     std::string(to_string(changed)) + " jobs only.",
                 422);
  }
  if (wanted.from && wanted.to && *wanted.from > *wanted.to) filter->fail("from", "Must not lie after to.");
  if (wanted.reason && bulk.request.action != BulkAction::retry)
    filter->fail("reason", "Only dead jobs have a reason: it goes with the action retry.", 422);
  filter->end();
  if (filter->ok() && bulk.biz_type.empty() && !wanted.biz_id && !wanted.from && !wanted.to && !wanted.reason)
    in.fail("filter", "Name at least one of biz_type, biz_id, from, to and reason.", 422);
}

// REQUIRES: `request` is a reschedule with a new time. `now`: WallTime{}: not known yet.
void check_deadlines(JsonObject& in, const BulkRequest& request, bool is_rounded, WallTime now) {
  const auto& first = request.action_time;
  const bool is_known = now != WallTime{};
  if (first && (is_too_early(*first, is_rounded) || (is_known && *first > now + kMaxDelay)))
    return in.fail("action_time", "Must lie between 2000-01-01 and 50 years ahead.");
  const WallTime last =
      first.value_or(now + request.delay.value_or(Duration(0))) + request.spread.value_or(Duration(0));
  if ((is_known || !first) && last > now + kMaxDelay)
    in.fail("spread_ms", "The last deadline must lie at most 50 years ahead.", 422);
}

void read_new_time(JsonObject& in, BulkRequest& request, WallTime now) {
  bool is_rounded = false;
  request.action_time = in.time("action_time", &is_rounded);
  const auto delay = in.integer("delay_ms", {0, kMostDelayMs});
  const auto spread = in.integer("spread_ms", {0, kMostSpreadMs});
  if (delay) request.delay = std::chrono::milliseconds(*delay);
  if (spread) request.spread = std::chrono::milliseconds(*spread);
  if (request.action_time && delay) in.fail("action_time", "Give action_time or delay_ms, not both.");
  const bool has_time = request.action_time || delay || spread;
  if (request.action == BulkAction::reschedule && !has_time)
    in.fail("action_time", "The action reschedule needs action_time, delay_ms or spread_ms.", 422);
  if (request.action != BulkAction::reschedule && has_time) {
    in.fail(request.action_time ? "action_time"
            : delay             ? "delay_ms"
                                : "spread_ms",
            "Goes with the action reschedule only.", 422);
  }
  if (request.action == BulkAction::reschedule && has_time) check_deadlines(in, request, is_rounded, now);
}

// The filter as it is stored: canonical JSON of the fields that were read.
std::string filter_text(const BulkCall& bulk) {
  const BulkFilter& filter = bulk.request.filter;
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  if (!bulk.biz_type.empty()) out.field("biz_type", bulk.biz_type);
  if (filter.biz_id) out.field("biz_id", *filter.biz_id);
  if (filter.from) out.field("from", rfc3339(*filter.from));
  if (filter.to) out.field("to", rfc3339(*filter.to));
  if (filter.reason) out.field("reason", *filter.reason);
  out.end_object();
  return text;
}

std::optional<Problem> read_bulk(const Call& call, WallTime now, BulkCall& bulk) {
  JsonDocument document(call.request.body);
  JsonObject in = document.root();
  const auto action = in.require("action").string("action", 1, 32);
  if (action) {
    const auto known = bulk_action_from(*action);
    if (known)
      bulk.request.action = *known;
    else
      in.fail("action", "Must be cancel, reschedule, run or retry.", 422);
  }
  read_bulk_filter(in, bulk);
  read_new_time(in, bulk.request, now);
  bulk.request.rate_per_s = in.number("rate_per_s", 0.001, 1e6);
  bulk.is_dry_run = in.boolean("dry_run").value_or(false);
  bulk.expected = in.integer("expected", {0, std::int64_t{1} << 53});
  bulk.request.reason = in.string("reason", 0, kMostReasonBytes).value_or("");
  in.end();
  bulk.request.filter_json = filter_text(bulk);
  bulk.request.actor = call.caller.name;
  return document.problem();
}

// How many jobs match, in all databases. nullopt: a database did not answer, and the call was refused.
std::optional<std::int64_t> count_matching(const ApiContext& context, const CallPtr& call, const BulkAccess& access,
                                           const BulkRequest& request) {
  std::int64_t matched = 0;
  for (const BulkDatabase& database : access.databases) {
    const auto part = database.store->count(request);
    if (!part) {
      call->refuse(context.problem_of(part.error(), database.database_id));
      return {};
    }
    matched += *part;
  }
  return matched;
}

void run_on_bulk_thread(const ApiContext& context, const CallPtr& call, std::function<void(BulkAccess&)> work) {
  if (!context.backend.post_bulk(unless_gone<BulkAccess>(
          call, [call, work = std::move(work)](BulkAccess& access) { guarded(call, [&] { work(access); }); })))
    ApiContext::too_busy(call);
}

Problem shard_moves() { return {503, "A shard is moving to another database: repeat the request.", "", 1}; }

// The placement of the shards (BulkStore::placement). nullopt: the call was refused.
std::optional<std::string> read_placement(const ApiContext& context, const CallPtr& call, const BulkAccess& access) {
  auto placement = access.databases.front().store->placement();
  if (placement && *placement) return std::move(*placement);
  call->refuse(placement ? shard_moves() : context.problem_of(placement.error(), 0));
  return {};
}

void start_counted(const ApiContext& context, const CallPtr& call, const BulkCall& bulk, BulkAccess& access) {
  const auto placement = read_placement(context, call, access);
  if (!placement) return;
  const auto matched = count_matching(context, call, access, bulk.request);
  if (!matched) return;
  if (bulk.expected && *bulk.expected != *matched) {
    Problem problem{409, "The filter matches " + std::to_string(*matched) + " jobs now.", "expected"};
    problem.members = "\"matched\":" + std::to_string(*matched);
    return call->refuse(problem);
  }
  std::string text;
  JsonWriter out(text);
  if (bulk.is_dry_run) {
    const auto placement_now = read_placement(context, call, access);
    if (!placement_now) return;
    if (*placement_now != *placement) return call->refuse(shard_moves());
    call->audit.is_left_out = true;
    out.begin_object().field("matched", *matched).end_object();
    return call->reply(200, std::move(text));
  }
  // If this node's runner is busy, the bulk operation is stored without a lease: the first runner that is free takes
  // it.
  const Duration lease = access.runner.is_busy() ? Duration(0) : BulkRunner::kLease;
  auto started = access.databases.front().store->start(bulk.request, *matched, access.node, lease, *placement);
  if (!started) return call->refuse(context.problem_of(started.error(), 0));
  if (!*started) return call->refuse(shard_moves());
  Bulk& running = **started;
  call->audit.target = std::to_string(running.bulk_id);
  call->audit.filter_json = bulk.request.filter_json;
  call->audit.matched = *matched;
  call->audit.reason = bulk.request.reason;
  out.begin_object().field("bulk_id", std::to_string(running.bulk_id)).field("matched", *matched).end_object();
  if (lease > Duration(0)) access.runner.take(std::move(running));
  call->reply(202, std::move(text));
}

void start_bulk(ApiContext& context, const CallPtr& call) {
  BulkCall bulk;
  if (const auto problem = read_bulk(*call, context.backend.now(), bulk)) return call->refuse(*problem);
  const auto start = [&context, call](const BulkCall& wanted) {
    run_on_bulk_thread(context, call,
                       [&context, call, wanted](BulkAccess& access) { start_counted(context, call, wanted, access); });
  };
  if (bulk.biz_type.empty()) return start(bulk);
  context.with_any_type(call, bulk.biz_type, "filter.biz_type", [bulk, start](const BizType& type) mutable {
    bulk.request.filter.type_id = type.type_id;
    start(bulk);
  });
}

// 0 (after the answer was given): no bulk operation can have this id.
std::int64_t bulk_id_of(const CallPtr& call) {
  const auto id = job_id_from_text(call->arguments.front());
  if (id && *id > 0) return *id;
  call->refuse({404, "There is no such bulk operation.", "bulk_id"});
  return 0;
}

using Find = std::function<Result<std::optional<Bulk>>(const BulkAccess&, std::int64_t)>;

void answer_bulk(const ApiContext& context, const CallPtr& call, const Find& find) {
  const std::int64_t id = bulk_id_of(call);
  if (id == 0) return;
  run_on_bulk_thread(context, call, [&context, call, find, id](BulkAccess& access) {
    const auto bulk = find(access, id);
    if (!bulk) return call->refuse(context.problem_of(bulk.error(), 0));
    if (!*bulk) return call->refuse({404, "There is no such bulk operation.", "bulk_id"});
    std::string text;
    JsonWriter out(text);
    write_bulk(out, **bulk);
    call->reply(200, std::move(text));
  });
}

void list_bulks(const ApiContext& context, const CallPtr& call) {
  run_on_bulk_thread(context, call, [&context, call](BulkAccess& access) {
    const auto bulks = access.databases.front().store->list(kMostListed);
    if (!bulks) return call->refuse(context.problem_of(bulks.error(), 0));
    std::string text;
    JsonWriter out(text);
    out.begin_object().key("items").begin_array();
    for (const Bulk& bulk : *bulks) write_bulk(out, bulk);
    out.end_array().end_object();
    call->reply(200, std::move(text));
  });
}

}  // namespace

std::vector<Route> bulk_routes(ApiContext& context) {
  return {
      {.method = "POST",
       .path = "/v1/bulk",
       .access = Access::produce,
       .audit = Audit::each,
       .operation_id = "startBulk",
       .tag = "Bulk",
       .summary = "Cancel, reschedule, run or retry all jobs that match a filter",
       .request = "NewBulk",
       .replies = {{200, "BulkMatch"}, {202, "BulkStarted"}},
       .errors = {409, 422, 429, 503},
       .handler = [&context](const CallPtr& call) { start_bulk(context, call); }},
      {.method = "GET",
       .path = "/v1/bulk",
       .access = Access::read,
       .operation_id = "listBulks",
       .tag = "Bulk",
       .summary = "The last hundred bulk operations, newest first",
       .replies = {{200, "BulkList"}},
       .errors = {429, 503},
       .handler = [&context](const CallPtr& call) { list_bulks(context, call); }},
      {.method = "GET",
       .path = "/v1/bulk/{bulk_id}",
       .access = Access::read,
       .operation_id = "getBulk",
       .tag = "Bulk",
       .summary = "The progress of a bulk operation",
       .replies = {{200, "Bulk"}},
       .errors = {404, 429, 503},
       .handler =
           [&context](const CallPtr& call) {
             answer_bulk(context, call, [](const BulkAccess& access, std::int64_t id) {
               return access.databases.front().store->find(id);
             });
           }},
      {.method = "POST",
       .path = "/v1/bulk/{bulk_id}/stop",
       .access = Access::produce,
       .audit = Audit::each,
       .operation_id = "stopBulk",
       .tag = "Bulk",
       .summary = "End a bulk operation: after the batch under way, or at once if no node runs it",
       .replies = {{200, "Bulk"}},
       .errors = {404, 429, 503},
       .handler =
           [&context](const CallPtr& call) {
             answer_bulk(context, call, [call](const BulkAccess& access, std::int64_t id) {
               const auto before = access.databases.front().store->find(id);
               // A stop that comes too late changes nothing.
               call->audit.is_left_out = before && *before && (*before)->finished_at;
               return stop_bulk(access.databases, access.node, id);
             });
           }},
  };
}

}  // namespace tocsin
