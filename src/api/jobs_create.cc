// POST /v1/jobs.
#include "api/jobs_create.h"

#include <algorithm>

#include "api/job_json.h"
#include "api/resources.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

constexpr std::size_t kSingleBody = 256 << 10;

// The state of the job that has the key, and when the key is free again.
std::string state_sentence(const CreateReply& reply) {
  if (!reply.existing) return "";
  const Job& job = *reply.existing;
  const std::string since = job.finished_at ? " since " + rfc3339(*job.finished_at) : "";
  if (is_final(job.status))
    return " It is " + std::string(to_string(job.status)) + since +
           ". A job that has ended keeps its key until its history is dropped: a new job needs another key.";
  return " It is " + std::string(to_string(job.status)) + ".";
}

void answer_create(const ApiContext& context, const CallPtr& call, const NewJob& job,
                   const Result<CreateReply>& result) {
  if (!result) return call->refuse(context.problem_of(result.error(), context.database_of(job.biz_id)));
  const CreateReply& reply = *result;
  if (reply.is_refused()) return call->refuse(create_refusal(context, job, reply));
  const bool is_new = reply.kind == CreateReply::Kind::created;
  call->audit.is_left_out = reply.kind == CreateReply::Kind::existing;
  if (reply.kind != CreateReply::Kind::existing) context.hint_if_soon(reply.job_id, job.type_id, reply.fire_at);
  const auto catalog = context.backend.types();
  call->reply(is_new ? 201 : 200, job_text(reply.existing ? *reply.existing : created_job(job, reply), *catalog));
}

void create_at_once(const ApiContext& context, const CallPtr& call, const NewJob& job) {
  const bool is_taken = context.backend.create(job, [&context, call, job](Result<CreateReply> result) {
    guarded(call, [&] { answer_create(context, call, job, result); });
  });
  if (!is_taken) ApiContext::too_busy(call);
}

// Creates the job after jobs with the same idempotency key that SQL callers created and that wait in an outbox.
void create_whole(const ApiContext& context, const CallPtr& call, const NewJob& job) {
  if (!job.idempotency_key) return create_at_once(context, call, job);
  context.after_outboxes(call, {{0, job.biz_id}},
                         [&context, call, job](const Backend::Unasked&) { create_at_once(context, call, job); });
}

void create(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body, "attribute");
  JsonObject in = document.root();
  JobRequest request = read_job(in, context.backend.now(), context.max_attribute_bytes);
  if (document.problem()) return call->refuse(*document.problem());
  take_traceparent(call, request.job);
  context.with_type(call, request.biz_type, "biz_type",
                    [&context, call, job = std::move(request.job)](const BizType& type) {
                      NewJob whole = job;
                      complete_job(whole, type);
                      create_whole(context, call, whole);
                    });
}

}  // namespace

Problem create_refusal(const ApiContext& context, const NewJob& job, const CreateReply& reply,
                       const std::string& item) {
  if (reply.kind == CreateReply::Kind::type_removed) {
    // The copy of a type in another database is marked before the type itself, and again if the removal is refused.
    if (context.database_of(job.biz_id) != 0)
      return {503, "The type is being removed: ask again.", item + "biz_type", 1};
    const auto catalog = context.backend.types();
    const BizType* const type = catalog->find(job.type_id);
    return ApiContext::unknown_type(type ? type->name : "", item + "biz_type");
  }
  if (reply.kind == CreateReply::Kind::invalid) return {400, reply.why, item.substr(0, item.rfind('.'))};
  if (reply.kind == CreateReply::Kind::unwritable) return {503, reply.why, item.substr(0, item.rfind('.')), 1};
  const std::string field = item + "idempotency_key";
  if (reply.kind == CreateReply::Kind::locked)
    return {503, "Another transaction holds this key, or many keys asked for before: repeat the request.", field, 1};
  const std::string id = std::to_string(reply.job_id);
  std::string detail = "Job " + id + " has this key";
  if (reply.kind == CreateReply::Kind::key_reused) detail += " and another body";
  if (reply.kind == CreateReply::Kind::not_pending) detail += ", and only a pending job can be changed";
  detail += '.' + state_sentence(reply);
  std::string members;
  JsonWriter out(members);
  out.field("job_id", id);
  if (reply.existing) out.field("job_status", to_string(reply.existing->status));
  return {409, detail, field, 0, members};
}

void complete_job(NewJob& job, const BizType& type) {
  job.type_id = type.type_id;
  if (!job.has_own_max_attempts) job.max_attempts = type.max_attempts;
}

void take_traceparent(const CallPtr& call, NewJob& job) {
  if (is_traceparent(call->request.traceparent)) job.traceparent = call->request.traceparent;
}

std::vector<Route> job_create_routes(ApiContext& context) {
  return {
      {.method = "POST",
       .path = "/v1/jobs",
       .access = Access::produce,
       .audit = Audit::counted,
       .operation_id = "createJob",
       .tag = "Jobs",
       .summary = "Create a job; 200 when the idempotency key has one already",
       .request = "NewJob",
       .body_limit = std::max(kSingleBody, 4 * context.max_attribute_bytes),
       .replies = {{201, "Job"}, {200, "Job"}},
       .errors = {409, 422, 429, 503},
       .handler = [&context](const CallPtr& call) { create(context, call); }},
  };
}

}  // namespace tocsin
