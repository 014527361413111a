// Cancel, reschedule, run and retry: changes to jobs that exist.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <unordered_set>

#include "api/job_json.h"
#include "api/resources.h"
#include "api/scatter.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

constexpr std::size_t kMaxIds = 10'000;
constexpr std::size_t kManyBody = 1 << 20;
constexpr std::size_t kManyChanged = 100;  // a call that changes more has a row of its own in the audit log

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

void answer_cancel(const ApiContext& context, const CallPtr& call, DatabaseId database_id,
                   const Result<CancelReply>& result) {
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
      return call->refuse(ApiContext::no_such_job());
    case CancelReply::Kind::locked:
      return call->refuse(context.problem_of(locked_job(result->job_id), database_id));
  }
}

void cancel(ApiContext& context, const CallPtr& call) {
  const JobId id = context.job_id_of(call);
  if (id == 0) return;
  const bool is_taken = context.backend.cancel(id, [&context, call, id](Result<CancelReply> result) {
    guarded(call, [&] { answer_cancel(context, call, context.database_of(id), result); });
  });
  if (!is_taken) ApiContext::too_busy(call);
}

void answer_change(const ApiContext& context, const CallPtr& call, JobId id, const Result<ChangeReply>& result) {
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
      return call->refuse(ApiContext::no_such_job());
    case ChangeReply::Kind::locked:
      return call->refuse(context.problem_of(locked_job(id), database_id));
  }
}

// Answers a change of one job when its reply comes.
auto answering_change(const ApiContext& context, const CallPtr& call, JobId id) {
  return [&context, call, id](const Result<ChangeReply>& result) {
    guarded(call, [&] { answer_change(context, call, id, result); });
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

// ---- many jobs

// What was asked to be cancelled: the jobs of a key, or (null) so many ids.
struct CancelFilter {
  const KeyCancel* key = nullptr;
  std::size_t ids = 0;
};

// For the audit log. Call before the reply.
void note_cancelled(const ApiContext& context, const CallPtr& call, std::size_t cancelled, const CancelFilter& filter) {
  call->audit.changed = static_cast<std::int64_t>(cancelled);
  call->audit.is_left_out = cancelled == 0;
  if (cancelled <= kManyChanged) return;
  const auto catalog = context.backend.types();
  const BizType* type = filter.key && filter.key->type ? catalog->find(*filter.key->type) : nullptr;
  JsonWriter out(call->audit.filter_json);
  out.begin_object();
  filter.key ? out.field("biz_id", filter.key->biz_id) : out.field("job_ids", filter.ids);
  if (type) out.field("biz_type", type->name);
  out.end_object();
}

bool is_locked(const CancelReply& reply) { return reply.kind == CancelReply::Kind::locked; }

// Ids whose databases gave no answer: nothing was done, or it is in doubt.
struct Unanswered {
  std::vector<JobId> unavailable, in_doubt;
  std::vector<std::string> impossible;  // as they were given: no job can have them
};

void write_ids(JsonWriter& out, const char* name, const std::vector<JobId>& ids) {
  out.key(name).begin_array();
  for (const JobId id : ids) out.value(std::to_string(id));
  out.end_array();
}

void answer_cancelled(const ApiContext& context, const CallPtr& call, const CancelFilter& filter,
                      const std::vector<CancelReply>& replies, const Unanswered& unanswered = {},
                      bool has_more = false) {
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
    if (kind == CancelReply::Kind::not_found)
      for (const std::string& given : unanswered.impossible) out.value(given);
    out.end_array();
  }
  if (!unanswered.unavailable.empty()) write_ids(out, "unavailable", unanswered.unavailable);
  if (!unanswered.in_doubt.empty()) write_ids(out, "in_doubt", unanswered.in_doubt);
  if (has_more) out.field("more", true);
  out.end_object();
  // Those in doubt may have been cancelled.
  const auto cancelled = std::ranges::count(replies, CancelReply::Kind::cancelled, &CancelReply::kind);
  note_cancelled(context, call, static_cast<std::size_t>(cancelled) + unanswered.in_doubt.size(), filter);
  call->reply(200, std::move(text));
}

using CancelReplies = std::vector<CancelReply>;
using IdsByDatabase = std::map<DatabaseId, std::vector<JobId>>;

void answer_cancels(const ApiContext& context, const CallPtr& call, const IdsByDatabase& ids,
                    std::vector<std::string> impossible, const std::vector<DatabaseAnswer<CancelReplies>>& answers) {
  if (refused_by_all(context, call, answers)) return;
  CancelReplies replies;
  Unanswered unanswered{.unavailable = {}, .in_doubt = {}, .impossible = std::move(impossible)};
  for (const auto& [database_id, result] : answers) {
    if (result) {
      replies.insert(replies.end(), result->begin(), result->end());
      continue;
    }
    auto& list = result.error().code == ErrorCode::in_doubt ? unanswered.in_doubt : unanswered.unavailable;
    list.insert(list.end(), ids.at(database_id).begin(), ids.at(database_id).end());
  }
  std::size_t asked = unanswered.impossible.size();
  for (const auto& [database_id, some] : ids) asked += some.size();
  answer_cancelled(context, call, {.ids = asked}, replies, unanswered);
}

// Passes the replies of a database on. Before that, jobs that other transactions hold locked are cancelled by threads
// that may wait for them.
void cancel_locked(ApiContext& context, DatabaseId database_id, Result<CancelReplies> replies,
                   const std::function<void(Result<CancelReplies>)>& reply) {
  std::vector<JobId> locked;
  if (replies)
    for (const CancelReply& each : *replies)
      if (is_locked(each)) locked.push_back(each.job_id);
  if (locked.empty()) return reply(std::move(replies));
  const auto first = std::make_shared<const CancelReplies>(std::move(*replies));
  const bool is_taken = context.backend.post_waiting(
      database_id,
      replying<CancelReplies>([locked](Stores& stores) { return stores.desk.cancel(locked, LockWait::some_seconds); },
                              [first, reply](Result<CancelReplies> rest) {
                                if (!rest && rest.error().code == ErrorCode::in_doubt) return reply(rest.error());
                                CancelReplies all = *first;
                                std::size_t next = 0;
                                for (CancelReply& each : all)
                                  if (rest && is_locked(each)) each = std::move((*rest)[next++]);
                                reply(std::move(all));
                              }));
  if (!is_taken) reply(*first);
}

// `texts`: ids as they were given. One that is given twice is answered once.
void cancel_ids(ApiContext& context, const CallPtr& call, const std::vector<std::string>& texts) {
  IdsByDatabase known;
  std::vector<std::string> impossible;
  std::unordered_set<JobId> seen;
  std::unordered_set<std::string> seen_texts;
  for (const std::string& text : texts) {
    const JobId id = job_id_from_text(text).value_or(0);
    if (!context.may_exist(id)) {
      if (seen_texts.insert(text).second) impossible.push_back(text);
    } else if (seen.insert(id).second) {
      known[context.database_of(id)].push_back(id);
    }
  }
  if (known.empty())
    return answer_cancelled(context, call, {}, {}, {.unavailable = {}, .in_doubt = {}, .impossible = impossible});
  const Ask<CancelReplies> ask = [&context, known](DatabaseId database_id,
                                                   std::function<void(Result<CancelReplies>)> reply) {
    return context.backend.post(
        database_id,
        replying<CancelReplies>(
            [known](Stores& stores) { return stores.desk.cancel(known.at(stores.database_id), LockWait::none); },
            [&context, database_id, reply](Result<CancelReplies> replies) {
              cancel_locked(context, database_id, std::move(replies), reply);
            }));
  };
  gather<CancelReplies>(context, call, databases_of(known), ask,
                        [&context, call, known, impossible](const std::vector<DatabaseAnswer<CancelReplies>>& answers) {
                          answer_cancels(context, call, known, impossible, answers);
                        });
}

// For a key that has more pending jobs than may share a statement with other keys.
void cancel_large_key(const ApiContext& context, const CallPtr& call, const KeyCancel& key) {
  context.wait_in_database(call, context.database_of(key.biz_id), [&context, call, key](Stores& stores) {
    const auto reply = stores.desk.cancel_all(key.biz_id, key.type);
    if (!reply) return call->refuse(context.problem_of(reply.error(), stores.database_id));
    answer_cancelled(context, call, {.key = &key}, reply->jobs, {}, reply->has_more);
  });
}

std::string cancelled_key_text(const KeyCancelReply& reply) {
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  write_ids(out, "cancelled", reply.cancelled);
  write_ids(out, "running", reply.running);
  write_ids(out, "finished", reply.finished);
  write_ids(out, "not_found", {});
  if (!reply.locked.empty()) write_ids(out, "locked", reply.locked);
  if (reply.has_more_finished) out.field("more_finished", true);
  out.end_object();
  return text;
}

// All jobs of a key live in one shard.
void cancel_key(const ApiContext& context, const CallPtr& call, const std::string& biz_id, std::optional<TypeId> type) {
  const KeyCancel key{biz_id, type};
  const bool is_taken = context.backend.cancel_key(key, [&context, call, key](const Result<KeyCancelReply>& result) {
    guarded(call, [&] {
      if (!result) return call->refuse(context.problem_of(result.error(), context.database_of(key.biz_id)));
      if (result->is_too_many) return cancel_large_key(context, call, key);
      note_cancelled(context, call, result->cancelled.size(), {.key = &key});
      call->reply(200, cancelled_key_text(*result));
    });
  });
  if (!is_taken) ApiContext::too_busy(call);
}

void cancel_key(ApiContext& context, const CallPtr& call, const std::string& biz_id,
                const std::optional<std::string>& biz_type) {
  if (!biz_type) return cancel_key(context, call, biz_id, std::optional<TypeId>());
  context.with_type(call, *biz_type, "biz_type", [&context, call, biz_id](const BizType& type) {
    cancel_key(context, call, biz_id, std::optional(type.type_id));
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
  for (std::size_t i = 0; texts && i < texts->size(); ++i)
    if (!job_id_from_text((*texts)[i]))
      in.fail("job_ids[" + std::to_string(i) + ']', "A job_id is a string of digits.");
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  biz_id ? cancel_key(context, call, *biz_id, biz_type) : cancel_ids(context, call, *texts);
}

// One database after the other, so that together they keep to the limit.
struct RetryRound {
  JobDesk::RetryMany request;
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
  call->audit.is_left_out = round.retried == 0;
  call->reply(200, std::move(text));
}

void retry_next(const ApiContext& context, const CallPtr& call, const std::shared_ptr<RetryRound>& round) {
  const auto next = round->answers.size();
  if (next == round->database_ids.size() || round->request.limit == 0) return answer_retries(context, call, *round);
  scatter<int>(
      context, call, {round->database_ids[next]},
      [round](DatabaseId, Stores& stores) { return stores.desk.retry_many(round->request); },
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
      round->database_ids.size());
}

void retry_many(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  JobDesk::RetryMany request;
  const std::string biz_type = in.require("biz_type").string("biz_type", 1, 128).value_or("");
  request.from = in.time("from");
  request.to = in.time("to");
  if (request.from && request.to && *request.from > *request.to) in.fail("from", "Must not lie after to.");
  request.limit = static_cast<int>(in.integer("limit", {1, 10'000}).value_or(request.limit));
  request.rate_per_s = in.number("rate_per_s", 0.001, 1e6);
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

Route many_route(std::string path, std::string operation_id, std::string summary, std::string request,
                 std::string reply, std::function<void(const CallPtr&)> handler) {
  return {.method = "POST",
          .path = std::move(path),
          .access = Access::produce,
          .audit = Audit::counted,
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
                   [&context](const CallPtr& call) { change(context, call, {}); }),
      change_route("retry", "retryJob", "A dead job: pending again with attempts 0", "Job",
                   [&context](const CallPtr& call) { retry(context, call); }),
  };
}

}  // namespace tocsin
