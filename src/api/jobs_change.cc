// Cancel, reschedule, run and retry: changes to one job that exists; and the dead jobs of a type.
#include <algorithm>
#include <memory>

#include "api/fan_out.h"
#include "api/job_json.h"
#include "api/resources.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

constexpr std::size_t kRetryBody = 1 << 20;

// "result" and "job", as members of whatever object they go into.
std::string result_members(std::string_view result, const std::optional<Job>& job, const TypeCatalog& catalog) {
  std::string text;
  JsonWriter out(text);
  out.field("result", result).key("job").raw_or_null(job ? job_text(*job, catalog) : std::string());
  return text;
}

// The refusal of a change that the job's state does not allow; its members show the state and the job.
Problem wrong_state(const ApiContext& context, std::string_view result, const std::optional<Job>& job) {
  std::string state(job ? to_string(job->status) : result);
  // What was claimed stays running until it is claimed again or dead.
  if (job && job->status == JobStatus::running && job->fire_at <= context.backend.now())
    state += ": its lease has ended without a result, and its next attempt is due";
  return {409, "The job is " + state + ".", "", 0, result_members(result, job, *context.backend.types())};
}

Error locked_job(JobId id) {
  return {ErrorCode::conflict, "job " + std::to_string(id) + " is locked by another transaction", ""};
}

// ---- one job

// `asked`: the database of the job when it was asked.
void answer_cancel(const ApiContext& context, const CallPtr& call, JobId id, DatabaseId asked,
                   const Result<CancelReply>& result) {
  const DatabaseId database_id = context.database_of(id);
  if (!result) return call->refuse(context.problem_of(result.error(), database_id));
  const auto catalog = context.backend.types();
  switch (result->kind) {
    case CancelReply::Kind::cancelled:
      return call->reply(200, '{' + result_members("cancelled", result->job, *catalog) + '}');
    case CancelReply::Kind::running:
      return call->refuse(wrong_state(context, "running", result->job));
    case CancelReply::Kind::finished:
      return call->refuse(wrong_state(context, "finished", result->job));
    case CancelReply::Kind::not_found:
      return call->refuse(context.missing_job(id, asked));
    case CancelReply::Kind::refused:  // only among many jobs, as in_doubt; of one job it is an Error
    case CancelReply::Kind::in_doubt:
    case CancelReply::Kind::locked:
      return call->refuse(context.problem_of(locked_job(result->job_id), database_id));
  }
}

void cancel(ApiContext& context, const CallPtr& call) {
  const JobId id = context.job_id_of(call);
  if (id == 0) return;
  const DatabaseId asked = context.database_of(id);
  const bool is_taken = context.backend.cancel(id, [&context, call, id, asked](const Result<CancelReply>& result) {
    guarded(call, [&] { answer_cancel(context, call, id, asked, result); });
  });
  if (!is_taken) ApiContext::too_busy(call);
}

void answer_change(const ApiContext& context, const CallPtr& call, JobId id, DatabaseId asked,
                   const Result<ChangeReply>& result) {
  const DatabaseId database_id = context.database_of(id);
  if (!result) return call->refuse(context.problem_of(result.error(), database_id));
  const auto catalog = context.backend.types();
  switch (result->kind) {
    case ChangeReply::Kind::changed:
      context.hint_if_soon(result->job->job_id, result->job->type_id, result->job->fire_at);
      return call->reply(200, job_text(*result->job, *catalog));
    case ChangeReply::Kind::pending:
      return call->refuse(wrong_state(context, "pending", result->job));
    case ChangeReply::Kind::running:
      return call->refuse(wrong_state(context, "running", result->job));
    case ChangeReply::Kind::finished:
      return call->refuse(wrong_state(context, "finished", result->job));
    case ChangeReply::Kind::type_removed:
      return call->refuse({409, "The job's type was removed: create the type again first.", "", 0,
                           result_members("finished", result->job, *catalog)});
    case ChangeReply::Kind::not_found:
      return call->refuse(context.missing_job(id, asked));
    case ChangeReply::Kind::locked:
      return call->refuse(context.problem_of(locked_job(id), database_id));
  }
}

// Answers a change of one job when its reply comes.
auto answering_change(const ApiContext& context, const CallPtr& call, JobId id) {
  return [&context, call, id, asked = context.database_of(id)](const Result<ChangeReply>& result) {
    guarded(call, [&] { answer_change(context, call, id, asked, result); });
  };
}

void change(ApiContext& context, const CallPtr& call, const std::optional<When>& when) {
  const JobId id = context.job_id_of(call);
  if (id != 0 && !context.backend.change({id, when}, answering_change(context, call, id))) ApiContext::too_busy(call);
}

void retry(ApiContext& context, const CallPtr& call) {
  const JobId id = context.job_id_of(call);
  if (id != 0 && !context.backend.retry(id, answering_change(context, call, id))) ApiContext::too_busy(call);
}

void reschedule(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  const When when = read_when(in, context.backend.now());
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  change(context, call, when);
}

// ---- the dead jobs of a type

// One database after the other, so that together they keep to the limit.
struct RetryRound {
  ClientStore::RetryMany request;
  std::vector<DatabaseId> database_ids;
  std::vector<DatabaseAnswer<int>> answers;
  int retried = 0;
};

void answer_retries(const ApiContext& context, const CallPtr& call, const RetryRound& round) {
  if (refused_by_all(context, call, round.answers)) return;
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("retried", round.retried);
  write_missing(out, context.backend, round.answers);
  out.end_object();
  call->audit.changed = round.retried;
  // What is in doubt may have changed jobs.
  call->audit.is_left_out = round.retried == 0 && std::ranges::none_of(round.answers, is_in_doubt<int>);
  call->reply(200, std::move(text));
}

// Of a large history the search for the dead takes seconds: not on the threads of short writes.
void retry_next(const ApiContext& context, const CallPtr& call, const std::shared_ptr<RetryRound>& round) {
  const auto next = round->answers.size();
  if (next == round->database_ids.size() || round->request.limit == 0) return answer_retries(context, call, *round);
  fan_out<int>(
      context, call, {round->database_ids[next]},
      [round](DatabaseId, Stores& stores) { return stores.client_store.retry_many(round->request); },
      [&context, call, round](std::vector<DatabaseAnswer<int>> answers) {
        if (const auto& n = answers.front().result) {
          round->retried += *n;
          round->request.limit -= *n;
        } else if (n.error().code == ErrorCode::in_doubt) {
          round->request.limit = 0;  // in doubt: unknown how much of the limit is left
        }
        round->answers.push_back(std::move(answers.front()));
        retry_next(context, call, round);
      },
      round->database_ids.size(), RequestQueue::type_retries);
}

void retry_many(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  ClientStore::RetryMany request;
  const std::string biz_type = in.require("biz_type").string("biz_type", 1, 128).value_or("");
  request.from = in.time("from");
  request.to = in.time("to");
  if (request.from && request.to && *request.from > *request.to) in.fail("from", "Must not lie after to.");
  request.limit = static_cast<int>(in.integer("limit", {1, std::int64_t{kMostJobsPerCall}}).value_or(request.limit));
  request.rate_per_s = in.number("rate_per_s", 0.001, 1e6);
  call->audit.reason = in.string("reason", 0, 1000).value_or("");
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  JsonWriter filter(call->audit.filter_json);
  filter.begin_object().field("biz_type", biz_type).field("limit", request.limit);
  if (request.from) filter.field("from", rfc3339(*request.from));
  if (request.to) filter.field("to", rfc3339(*request.to));
  filter.end_object();
  context.with_type(call, biz_type, "biz_type", [&context, call, request](const BizType& type) mutable {
    request.type_id = type.type_id;
    const auto database_ids = context.backend.database_ids();
    if (request.rate_per_s) *request.rate_per_s /= static_cast<double>(database_ids.size());
    retry_next(context, call, std::make_shared<RetryRound>(RetryRound{request, database_ids, {}, 0}));
  });
}

// ---- routes

Route change_route(std::string verb, std::string operation_id, std::string summary, std::string reply,
                   std::function<void(const CallPtr&)> handler) {
  return {.method = "POST",
          .path = "/v1/jobs/{job_id}/" + verb,
          .access = Access::produce,
          .audit = Audit::counted,
          .operation_id = std::move(operation_id),
          .tag = "Jobs",
          .summary = std::move(summary),
          .replies = {{200, std::move(reply)}, {409, "WrongState"}},
          .errors = {404, 429, 503},
          .handler = std::move(handler)};
}

}  // namespace

std::vector<Route> job_change_routes(ApiContext& context) {
  Route move = change_route("reschedule", "rescheduleJob", "A new deadline for a pending job", "Job",
                            [&context](const CallPtr& call) { reschedule(context, call); });
  move.request = "NewTime";
  return {
      {.method = "POST",
       .path = "/v1/jobs/retry",
       .access = Access::produce,
       .audit = Audit::counted,
       .operation_id = "retryJobs",
       .tag = "Jobs",
       .summary = "Dead jobs of a type: pending again",
       .request = "RetryJobs",
       .body_limit = kRetryBody,
       .replies = {{200, "RetriedJobs"}},
       .errors = {413, 422, 429, 503},
       .handler = [&context](const CallPtr& call) { retry_many(context, call); }},
      change_route("cancel", "cancelJob", "Cancel a pending job", "CancelledJob",
                   [&context](const CallPtr& call) { cancel(context, call); }),
      std::move(move),
      change_route("run", "runJob", "A pending job: due now", "Job",
                   [&context](const CallPtr& call) { change(context, call, {}); }),
      change_route("retry", "retryJob", "A dead job: pending again with attempts 0", "Job",
                   [&context](const CallPtr& call) { retry(context, call); }),
  };
}

}  // namespace tocsin
