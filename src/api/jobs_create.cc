// POST /v1/jobs and /v1/jobs/batch.
#include "api/job_json.h"
#include "api/resources.h"

namespace tocsin {
namespace {

constexpr std::size_t kMaxBatch = 10'000;
constexpr std::size_t kSingleBody = 256 << 10;
constexpr std::size_t kBatchBody = 32 << 20;

// Why a create was refused.
Problem refusal(const CreateReply& reply, const std::string& field) {
  const std::string id = std::to_string(reply.job_id);
  const std::string state(reply.existing ? to_string(reply.existing->status) : "not pending");
  const std::string detail = reply.kind == CreateReply::Kind::key_reused
                                 ? "Job " + id + " has this key and another body."
                             : reply.kind == CreateReply::Kind::rejected
                                 ? "Job " + id + " has this key."
                                 : "Job " + id + " has this key and is " + state + ": too late to change it.";
  return {409, detail, field, 0, "\"job_id\":\"" + id + '"'};
}

void complete(NewJob& job, const BizType& type) {
  job.type_id = type.type_id;
  if (!job.has_own_max_attempts) job.max_attempts = type.max_attempts;
}

void take_traceparent(const CallPtr& call, NewJob& job) {
  if (is_traceparent(call->request.traceparent)) job.traceparent = call->request.traceparent;
}

void answer_create(const ApiContext& context, const CallPtr& call, const NewJob& job,
                   const Result<CreateReply>& result) {
  if (!result) return call->refuse(context.problem_of(result.error()));
  const CreateReply& reply = *result;
  if (reply.is_refused()) return call->refuse(refusal(reply, "idempotency_key"));
  const bool is_new = reply.kind == CreateReply::Kind::created;
  if (reply.kind != CreateReply::Kind::existing) context.hint_if_soon(reply.job_id, job.type_id, reply.fire_at);
  const auto catalog = context.backend.types();
  call->reply(is_new ? 201 : 200, job_text(reply.existing ? *reply.existing : created_job(job, reply), *catalog));
}

void create(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body, "attribute");
  JsonObject in = document.root();
  JobRequest request = read_job(in, context.backend.now(), context.max_attribute_bytes);
  if (document.problem()) return call->refuse(*document.problem());
  take_traceparent(call, request.job);
  context.with_type(
      call, request.biz_type, "biz_type", [&context, call, job = std::move(request.job)](const BizType& type) {
        NewJob whole = job;
        complete(whole, type);
        const bool is_taken = context.backend.create(whole, [&context, call, whole](Result<CreateReply> result) {
          guarded(call, [&] { answer_create(context, call, whole, result); });
        });
        if (!is_taken) ApiContext::too_busy(call);
      });
}

// One batch on its way: jobs that are valid, and for every item what became of it.
struct Batch {
  struct Item {
    std::optional<Problem> problem;
    std::size_t job = 0;  // index into jobs, without a problem
  };
  std::vector<Item> items;
  std::vector<NewJob> jobs;
};

std::string item_field(std::size_t i, const std::string& name) { return "jobs[" + std::to_string(i) + "]." + name; }

// The first mistake goes to the document, or with `is_partial` each to its item.
Batch read_batch(ApiContext& context, const CallPtr& call, Stores& stores, JsonDocument& document, bool is_partial) {
  Batch batch;
  JsonObject root = document.root();
  auto list = root.require("jobs").objects("jobs", kMaxBatch);
  root.end();
  if (!list) return batch;
  const WallTime now = context.backend.now();
  batch.jobs.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    JsonObject& in = (*list)[i];
    JobRequest request = read_job(in, now, context.max_attribute_bytes);
    std::shared_ptr<const BizType> type;
    if (in.ok()) type = context.find_type(stores, request.biz_type);
    if (in.ok() && !type) in.refuse(ApiContext::unknown_type(request.biz_type, item_field(i, "biz_type")));
    if (!in.ok() && !is_partial) return batch;
    batch.items.push_back({in.take_problem(), batch.jobs.size()});
    if (batch.items.back().problem) continue;
    complete(request.job, *type);
    take_traceparent(call, request.job);
    batch.jobs.push_back(std::move(request.job));
  }
  return batch;
}

std::string batch_text(const Batch& batch, const std::vector<CreateReply>& replies) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    const Batch::Item& item = batch.items[i];
    out.begin_object();
    if (item.problem) {
      out.key("error").raw(problem_text(*item.problem));
    } else if (const CreateReply& reply = replies[item.job]; reply.is_refused()) {
      out.key("error").raw(problem_text(refusal(reply, item_field(i, "idempotency_key"))));
    } else {
      out.field("job_id", std::to_string(reply.job_id)).field("created", reply.kind == CreateReply::Kind::created);
    }
    out.end_object();
  }
  out.end_array().end_object();
  return text;
}

void create_batch(ApiContext& context, const CallPtr& call, Stores& stores, bool is_partial) {
  JsonDocument document(call->request.body, "attribute");
  const Batch batch = read_batch(context, call, stores, document, is_partial);
  call->request.body = {};
  if (document.problem()) return call->refuse(*document.problem());

  std::vector<CreateReply> replies;
  if (!batch.jobs.empty()) {
    auto result = stores.desk.create(batch.jobs, is_partial ? CreateMode::each_by_itself : CreateMode::all_or_nothing);
    if (!result) return call->refuse(context.problem_of(result.error()));
    replies = std::move(*result);
  }
  for (std::size_t i = 0; i < replies.size() && !is_partial; ++i) {
    if (replies[i].is_refused()) return call->refuse(refusal(replies[i], item_field(i, "idempotency_key")));
  }
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].is_refused() && replies[i].kind != CreateReply::Kind::existing)
      context.hint_if_soon(replies[i].job_id, batch.jobs[i].type_id, replies[i].fire_at);
  }
  call->reply(201, batch_text(batch, replies));
}

void create_batch(ApiContext& context, const CallPtr& call) {
  const std::string partial = call->parameter("partial").value_or("false");
  if (partial != "true" && partial != "false") return call->refuse({400, "Must be true or false.", "partial"});
  // A large body takes its time to parse: not on a network thread.
  context.on_database(call, [&context, call, is_partial = partial == "true"](Stores& stores) {
    create_batch(context, call, stores, is_partial);
  });
}

}  // namespace

std::vector<Route> job_create_routes(ApiContext& context) {
  return {
      {.method = "POST",
       .path = "/v1/jobs",
       .access = Access::produce,
       .operation_id = "createJob",
       .tag = "Jobs",
       .summary = "Create a job; 200 when the idempotency key has one already",
       .request = "NewJob",
       .body_limit = std::max(kSingleBody, 4 * context.max_attribute_bytes),
       .replies = {{201, "Job"}, {200, "Job"}},
       .errors = {409, 422, 429, 503},
       .handler = [&context](const CallPtr& call) { create(context, call); }},
      {.method = "POST",
       .path = "/v1/jobs/batch",
       .access = Access::produce,
       .operation_id = "createJobs",
       .tag = "Jobs",
       .summary = "Create up to 10,000 jobs, all or nothing; with partial=true each by itself",
       .query = {{"partial", R"({"type":"boolean","default":false})", "Refused items undo nothing else"}},
       .request = "NewJobs",
       .body_limit = kBatchBody,
       .replies = {{201, "CreatedJobs"}},
       .errors = {409, 413, 422, 429, 503},
       .handler = [&context](const CallPtr& call) { create_batch(context, call); }},
  };
}

}  // namespace tocsin
