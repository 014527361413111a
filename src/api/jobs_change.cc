// Cancel, reschedule, run and retry: changes to jobs that exist.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "api/job_json.h"
#include "api/resources.h"

namespace tocsin {
namespace {

constexpr std::size_t kMaxIds = 10'000;
constexpr std::size_t kManyBody = 1 << 20;

// "result" and "job", as members of whatever object they go into.
std::string result_members(std::string_view result, const std::optional<Job>& job, const TypeCatalog& catalog) {
  std::string text;
  JsonWriter out(text);
  out.field("result", result).key("job").raw_or_null(job ? job_text(*job, catalog) : std::string());
  return text;
}

// The job is in no state for this; the answer says in which, and shows it.
Problem wrong_state(std::string_view result, const std::optional<Job>& job, const TypeCatalog& catalog) {
  const std::string state(job ? to_string(job->status) : result);
  return {409, "The job is " + state + ".", "", 0, result_members(result, job, catalog)};
}

Error locked_job(JobId id) {
  return {ErrorCode::conflict, "job " + std::to_string(id) + " is locked by another transaction", ""};
}

// ---- one job

void answer_cancel(const ApiContext& context, const CallPtr& call, const Result<CancelReply>& result) {
  if (!result) return call->refuse(context.problem_of(result.error()));
  const auto catalog = context.backend.types();
  switch (result->kind) {
    case CancelReply::Kind::cancelled:
      return call->reply(200, '{' + result_members("cancelled", result->job, *catalog) + '}');
    case CancelReply::Kind::running:
      return call->refuse(wrong_state("running", result->job, *catalog));
    case CancelReply::Kind::finished:
      return call->refuse(wrong_state("finished", result->job, *catalog));
    case CancelReply::Kind::not_found:
      return call->refuse(ApiContext::no_such_job());
    case CancelReply::Kind::locked:
      return call->refuse(context.problem_of(locked_job(result->job_id)));
  }
}

void cancel(ApiContext& context, const CallPtr& call) {
  const JobId id = context.job_id_of(call);
  if (id == 0) return;
  const bool is_taken = context.backend.cancel(id, [&context, call](Result<CancelReply> result) {
    guarded(call, [&] { answer_cancel(context, call, result); });
  });
  if (!is_taken) ApiContext::too_busy(call);
}

void answer_change(const ApiContext& context, const CallPtr& call, const Result<ChangeReply>& result) {
  if (!result) return call->refuse(context.problem_of(result.error()));
  const auto catalog = context.backend.types();
  switch (result->kind) {
    case ChangeReply::Kind::changed:
      context.hint_if_soon(result->job->job_id, result->job->type_id, result->job->fire_at);
      return call->reply(200, job_text(*result->job, *catalog));
    case ChangeReply::Kind::pending:
      return call->refuse(wrong_state("pending", result->job, *catalog));
    case ChangeReply::Kind::running:
      return call->refuse(wrong_state("running", result->job, *catalog));
    case ChangeReply::Kind::finished:
      return call->refuse(wrong_state("finished", result->job, *catalog));
    case ChangeReply::Kind::not_found:
      return call->refuse(ApiContext::no_such_job());
  }
}

// `change` is one of JobDesk's verbs.
void change(ApiContext& context, const CallPtr& call, std::function<Result<ChangeReply>(JobDesk&, JobId)> verb) {
  const JobId id = context.job_id_of(call);
  if (id == 0) return;
  context.on_database(call, [&context, call, id, verb = std::move(verb)](Stores& stores) {
    answer_change(context, call, verb(stores.desk, id));
  });
}

void reschedule(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  const When when = read_when(in, context.backend.now());
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  change(context, call, [when](JobDesk& desk, JobId id) { return desk.reschedule(id, when); });
}

// ---- many jobs

bool is_locked(const CancelReply& reply) { return reply.kind == CancelReply::Kind::locked; }

std::string cancelled_text(const std::vector<CancelReply>& replies) {
  constexpr std::array kNames{
      std::pair{CancelReply::Kind::cancelled, "cancelled"}, std::pair{CancelReply::Kind::running, "running"},
      std::pair{CancelReply::Kind::finished, "finished"}, std::pair{CancelReply::Kind::not_found, "not_found"},
      std::pair{CancelReply::Kind::locked, "locked"}};
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  for (const auto& [kind, name] : kNames) {
    // Rare enough to be absent when there is none.
    if (kind == CancelReply::Kind::locked && std::ranges::none_of(replies, is_locked)) continue;
    out.key(name).begin_array();
    for (const CancelReply& reply : replies) {
      if (reply.kind == kind) out.value(std::to_string(reply.job_id));
    }
    out.end_array();
  }
  out.end_object();
  return text;
}

void cancel_ids(ApiContext& context, const CallPtr& call, const std::vector<JobId>& ids) {
  context.on_database(call, [&context, call, ids](Stores& stores) {
    std::vector<JobId> known;
    std::vector<CancelReply> unknown;
    for (const JobId id : ids) {
      if (context.may_exist(id))
        known.push_back(id);
      else
        unknown.push_back({.kind = CancelReply::Kind::not_found, .job_id = id, .job = {}});
    }
    auto replies = stores.desk.cancel(known);
    if (!replies) return call->refuse(context.problem_of(replies.error()));
    replies->insert(replies->end(), unknown.begin(), unknown.end());
    call->reply(200, cancelled_text(*replies));
  });
}

void cancel_key(ApiContext& context, const CallPtr& call, const std::string& biz_id,
                const std::optional<std::string>& biz_type) {
  context.on_database(call, [&context, call, biz_id, biz_type](Stores& stores) {
    std::shared_ptr<const BizType> type;
    if (biz_type && !(type = context.find_type(stores, *biz_type)))
      return call->refuse(ApiContext::unknown_type(*biz_type, "biz_type"));
    const auto replies = stores.desk.cancel_all(biz_id, type ? std::optional(type->type_id) : std::nullopt);
    if (!replies) return call->refuse(context.problem_of(replies.error()));
    call->reply(200, cancelled_text(*replies));
  });
}

void cancel_many(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  const auto biz_id = in.string_or_number("biz_id", 1, kMaxBizIdBytes);
  const auto biz_type = in.string("biz_type", 1, 128);
  const auto texts = in.strings("job_ids", kMaxIds);
  if (biz_id.has_value() == texts.has_value()) in.fail("biz_id", "Give biz_id or job_ids.");
  if (texts && biz_type) in.fail("biz_type", "Goes with biz_id only.");
  std::vector<JobId> ids;
  std::unordered_set<JobId> seen;
  for (std::size_t i = 0; texts && i < texts->size(); ++i) {
    const auto id = job_id_from_text((*texts)[i]);
    if (!id) in.fail("job_ids[" + std::to_string(i) + ']', "A job_id is a string of digits.");
    if (id && seen.insert(*id).second) ids.push_back(*id);
  }
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  biz_id ? cancel_key(context, call, *biz_id, biz_type) : cancel_ids(context, call, ids);
}

void retry_many(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  JobDesk::RetryMany request;
  const std::string biz_type = in.require("biz_type").string("biz_type", 1, 128).value_or("");
  request.from = in.time("from");
  request.to = in.time("to");
  request.limit = static_cast<int>(in.integer("limit", {1, 10'000}).value_or(request.limit));
  request.rate_per_s = in.number("rate_per_s", 0.001, 1e6);
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  context.on_database(call, [&context, call, biz_type, request](Stores& stores) mutable {
    const auto type = context.find_type(stores, biz_type);
    if (!type) return call->refuse(ApiContext::unknown_type(biz_type, "biz_type"));
    request.type_id = type->type_id;
    const auto n = stores.desk.retry_many(request);
    if (!n) return call->refuse(context.problem_of(n.error()));
    call->reply(200, "{\"retried\":" + std::to_string(*n) + '}');
  });
}

// ---- routes

Route change_route(std::string verb, std::string operation_id, std::string summary, std::string reply,
                   std::function<void(const CallPtr&)> handler) {
  return {.method = "POST",
          .path = "/v1/jobs/{job_id}/" + verb,
          .access = Access::produce,
          .operation_id = std::move(operation_id),
          .tag = "Jobs",
          .summary = std::move(summary),
          .replies = {{200, std::move(reply)}, {409, "WrongState"}},
          .errors = {404, 429, 503},
          .handler = std::move(handler)};
}

Route many_route(std::string path, std::string operation_id, std::string summary, std::string request,
                 std::string reply, std::function<void(const CallPtr&)> handler) {
  return {.method = "POST",
          .path = std::move(path),
          .access = Access::produce,
          .operation_id = std::move(operation_id),
          .tag = "Jobs",
          .summary = std::move(summary),
          .request = std::move(request),
          .body_limit = kManyBody,
          .replies = {{200, std::move(reply)}},
          .errors = {413, 422, 429, 503},
          .handler = std::move(handler)};
}

}  // namespace

std::vector<Route> job_change_routes(ApiContext& context) {
  Route move = change_route("reschedule", "rescheduleJob", "A new deadline for a pending job", "Job",
                            [&context](const CallPtr& call) { reschedule(context, call); });
  move.request = "NewTime";
  return {
      many_route("/v1/jobs/cancel", "cancelJobs", "Cancel by business key or by ids", "CancelJobs", "CancelledJobs",
                 [&context](const CallPtr& call) { cancel_many(context, call); }),
      many_route("/v1/jobs/retry", "retryJobs", "Dead jobs of a type: pending again", "RetryJobs", "RetriedJobs",
                 [&context](const CallPtr& call) { retry_many(context, call); }),
      change_route("cancel", "cancelJob", "Cancel a pending job", "CancelledJob",
                   [&context](const CallPtr& call) { cancel(context, call); }),
      std::move(move),
      change_route("run", "runJob", "A pending job: due now", "Job",
                   [&context](const CallPtr& call) {
                     change(context, call, [](JobDesk& desk, JobId id) { return desk.run_now(id); });
                   }),
      change_route("retry", "retryJob", "A dead job: pending again with attempts 0", "Job",
                   [&context](const CallPtr& call) {
                     change(context, call, [](JobDesk& desk, JobId id) { return desk.retry(id); });
                   }),
  };
}

}  // namespace tocsin
