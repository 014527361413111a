// POST /v1/jobs/batch.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "api/fan_out.h"
#include "api/job_json.h"
#include "api/jobs_create.h"
#include "api/resources.h"
#include "ports/row_refusal.h"

namespace tocsin {
namespace {

constexpr std::size_t kBatchBody = 32 << 20;

// A batch that is being created: the request, and for every item its mistake or its job.
struct Batch {
  struct Item {
    std::optional<Problem> problem;
    std::string biz_type;
    std::size_t job = 0;  // index into jobs, without a problem
  };
  std::vector<Item> items;
  std::vector<NewJob> jobs;

  // The names of the types that this node's snapshot lacks, each once.
  std::vector<std::string> unknown_names(const TypeCatalog& catalog) const;
  // Sets the type of every job. An item whose type is missing gets `problem`; if that is nullopt, the problem of an
  // unknown type.
  void settle_types(const TypeCatalog& catalog, const std::optional<Problem>& problem);
  std::optional<Problem> first_problem() const;
  // The jobs with idempotency keys are not created: their items get the problem.
  void refuse_keyed(const Problem& problem);
};

std::string item_field(std::size_t i, const std::string& name) { return "jobs[" + std::to_string(i) + "]." + name; }

std::vector<std::string> Batch::unknown_names(const TypeCatalog& catalog) const {
  std::set<std::string> names;
  for (const Item& item : items)
    if (!item.problem && !catalog.find(item.biz_type)) names.insert(item.biz_type);
  return {names.begin(), names.end()};
}

void Batch::settle_types(const TypeCatalog& catalog, const std::optional<Problem>& problem) {
  std::vector<NewJob> known;
  known.reserve(jobs.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    Item& item = items[i];
    if (item.problem) continue;
    const BizType* type = catalog.find(item.biz_type);
    if (type == nullptr) {
      item.problem = problem ? *problem : ApiContext::unknown_type(item.biz_type, item_field(i, "biz_type"));
      continue;
    }
    known.push_back(std::move(jobs[item.job]));
    complete_job(known.back(), *type);
    item.job = known.size() - 1;
  }
  jobs = std::move(known);
}

void Batch::refuse_keyed(const Problem& problem) {
  std::vector<NewJob> others;
  for (Item& item : items) {
    if (item.problem) continue;
    NewJob& job = jobs[item.job];
    if (job.idempotency_key) {
      item.problem = problem;
      continue;
    }
    others.push_back(std::move(job));
    item.job = others.size() - 1;
  }
  jobs = std::move(others);
}

std::optional<Problem> Batch::first_problem() const {
  const auto at = std::ranges::find_if(items, [](const Item& item) { return item.problem.has_value(); });
  return at == items.end() ? std::nullopt : at->problem;
}

// Reads the body. Without `is_partial` the first mistake goes to the document; with it each mistake goes to its item.
Batch read_batch(ApiContext& context, const CallPtr& call, JsonDocument& document, bool is_partial) {
  Batch batch;
  JsonObject root = document.root();
  auto list = root.require("jobs").objects("jobs", kMostJobsPerCall, is_partial);
  root.end();
  if (!list || document.problem()) return batch;  // a mistake beside the jobs is none of the first job
  const WallTime now = context.backend.now();
  batch.jobs.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    JsonObject& in = (*list)[i];
    if (const Problem* problem = document.item_problem(i)) in.refuse(*problem);
    if (!in.is_object()) in.refuse({400, "Must be an object.", "jobs[" + std::to_string(i) + "]"});
    JobRequest request = read_job(in, now, context.max_attribute_bytes);
    if (!in.ok() && !is_partial) return batch;
    batch.items.push_back({in.take_problem(), std::move(request.biz_type), batch.jobs.size()});
    if (batch.items.back().problem) continue;
    take_traceparent(call, request.job);
    batch.jobs.push_back(std::move(request.job));
  }
  return batch;
}

// The jobs of a batch that go to one database, and where each stands among all.
struct Part {
  std::vector<NewJob> jobs;
  std::vector<std::size_t> at;
};
using Parts = std::map<DatabaseId, Part>;
using Replies = std::vector<CreateReply>;

Parts parts_of(const ApiContext& context, std::vector<NewJob> jobs) {
  Parts parts;
  if (context.backend.database_ids().size() == 1) {
    Part& all = parts[0];
    all.jobs = std::move(jobs);
    all.at.resize(all.jobs.size());
    std::iota(all.at.begin(), all.at.end(), std::size_t{0});
    return parts;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Part& part = parts[context.database_of(jobs[i].biz_id)];
    part.jobs.push_back(std::move(jobs[i]));
    part.at.push_back(i);
  }
  return parts;
}

// The result of one job.
struct ItemResult {
  std::optional<Problem> problem;
  JobId job_id = 0;
  bool is_created = false;  // and it is undone if there is a problem
};

class BatchAnswer {
 public:
  BatchAnswer(const ApiContext& context, const Batch& batch, const Parts& parts, bool is_partial)
      : context_(context), batch_(batch), parts_(parts), is_partial_(is_partial), results_(parts_jobs()) {}

  void answer(const CallPtr& call, const std::vector<DatabaseAnswer<Replies>>& answers);

 private:
  std::size_t parts_jobs() const;
  std::vector<std::size_t> items_of_jobs() const;
  void take(DatabaseId database_id, const Replies& replies);
  std::string items_text() const;

  const ApiContext& context_;
  const Batch& batch_;
  const Parts& parts_;
  const bool is_partial_;
  std::vector<ItemResult> results_;       // by job
  std::optional<Problem> first_problem_;  // of a database whose jobs were not created
};

std::size_t BatchAnswer::parts_jobs() const {
  std::size_t n = 0;
  for (const auto& [database_id, part] : parts_) n += part.jobs.size();
  return n;
}

// Without partial=true one refusal has undone all of its database.
void BatchAnswer::take(DatabaseId database_id, const Replies& replies) {
  const Part& part = parts_.at(database_id);
  const auto items = items_of_jobs();
  const bool is_undone = !is_partial_ && std::ranges::any_of(replies, &CreateReply::is_refused);
  std::map<JobId, std::size_t> undone;  // jobs that were made by this batch and are gone, and their items
  for (std::size_t i = 0; is_undone && i < replies.size(); ++i)
    if (replies[i].kind == CreateReply::Kind::created && replies[i].job_id != 0)
      undone.emplace(replies[i].job_id, items[part.at[i]]);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const CreateReply& reply = replies[i];
    ItemResult& result = results_[part.at[i]];
    result.job_id = reply.job_id;
    result.is_created = reply.kind == CreateReply::Kind::created;
    if (reply.is_refused()) {
      const std::size_t item = items[part.at[i]];
      const auto rival = undone.find(reply.job_id);
      result.problem = rival == undone.end()
                           ? create_refusal(context_, part.jobs[i], reply, item_field(item, ""))
                           : Problem{409, "jobs[" + std::to_string(rival->second) + "] has the same key.",
                                     item_field(item, "idempotency_key")};
      if (is_undone && !first_problem_) first_problem_ = result.problem;
    } else if (is_undone) {
      result.problem = Problem{409, "Not created: of the jobs that go to the same database, another was refused."};
    } else if (reply.kind != CreateReply::Kind::existing) {
      context_.hint_if_soon(reply.job_id, part.jobs[i].type_id, reply.fire_at);
    }
  }
}

std::vector<std::size_t> BatchAnswer::items_of_jobs() const {
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < batch_.items.size(); ++i)
    if (!batch_.items[i].problem) items.push_back(i);
  return items;
}

std::string BatchAnswer::items_text() const {
  std::string text;
  JsonWriter out(text);
  out.key("items").begin_array();
  for (const Batch::Item& item : batch_.items) {
    const ItemResult* result = item.problem ? nullptr : &results_[item.job];
    const Problem* problem = item.problem ? &*item.problem : result->problem ? &*result->problem : nullptr;
    out.begin_object();
    if (problem)
      out.key("error").raw(problem_text(*problem));
    else
      out.field("job_id", std::to_string(result->job_id)).field("created", result->is_created);
    out.end_object();
  }
  out.end_array();
  return text;
}

void BatchAnswer::answer(const CallPtr& call, const std::vector<DatabaseAnswer<Replies>>& answers) {
  bool is_all_failed = !answers.empty();
  for (const auto& [database_id, replies] : answers) {
    // A held key of a batch's only job is the problem of its item, as one of several is.
    is_all_failed = is_all_failed && !replies && replies.error().code != ErrorCode::conflict;
    if (replies) {
      take(database_id, *replies);
      continue;
    }
    const Problem problem = context_.problem_of(replies.error(), database_id);
    if (!first_problem_) first_problem_ = problem;
    for (const std::size_t at : parts_.at(database_id).at) results_[at].problem = problem;
  }
  const auto is_created = [](const ItemResult& result) { return result.is_created && !result.problem; };
  call->audit.changed = std::ranges::count_if(results_, is_created);
  call->audit.is_left_out = call->audit.changed == 0;
  if (first_problem_ && (!is_partial_ || is_all_failed)) {
    Problem problem = *first_problem_;
    // With several databases each one has created all or none of its jobs, so the answer has the result of each item.
    if (answers.size() > 1) problem.members += (problem.members.empty() ? "" : ",") + items_text();
    return call->refuse(problem);
  }
  call->reply(201, '{' + items_text() + '}');
}

using TakeReplies = std::function<void(Result<Replies>)>;

// Creates a part of a batch.
std::function<Result<Replies>(Stores&)> creating(ApiContext& context, std::shared_ptr<const Parts> parts,
                                                 CreateMode mode) {
  return [&context, parts = std::move(parts), mode](Stores& there) -> Result<Replies> {
    if (auto done = context.backend.make_types_known(there); !done) return done.error();
    return there.client_store.create(parts->at(there.database_id).jobs, mode);
  };
}

// Returns the work that creates a part of a batch, the jobs of one database. It does not wait for keys that other
// transactions hold: if a key is held, threads that may wait create the part. If too many parts wait there already, or
// this one has waited for a thread too long, a part that is all or nothing is refused, and of any other part only the
// items whose keys are held.
std::function<void(Stores&)> creating_soon(ApiContext& context, const CallPtr& call,
                                           const std::shared_ptr<const Parts>& parts, bool is_partial,
                                           DatabaseId database_id, TakeReplies reply) {
  const auto first = is_partial ? CreateMode::each_if_free : CreateMode::all_if_free;
  const auto later = is_partial ? CreateMode::each_by_itself : CreateMode::all_or_nothing;
  const auto too_late = is_partial ? CreateMode::each_but_held : CreateMode::all_if_free;
  const bool has_keys = std::ranges::any_of(parts->at(database_id).jobs,
                                            [](const NewJob& job) { return job.idempotency_key.has_value(); });
  if (!has_keys) return beginning<Replies>(call, creating(context, parts, later), std::move(reply));
  const auto wait = [&context, parts, later, too_late](Stores& there) {
    return creating(context, parts, there.queued < kMostQueuedForLocks ? later : too_late)(there);
  };
  return [&context, call, parts, is_partial, database_id, first, wait, reply = std::move(reply)](Stores& stores) {
    const auto take_first = [&](Result<Replies> replies) {
      const bool is_held = !replies && replies.error().code == ErrorCode::conflict;
      const bool is_refused = !replies && is_row_error(replies.error());  // one of its jobs
      if (!is_held && !(is_partial && is_refused)) return reply(std::move(replies));
      if (context.backend.post_waiting(database_id, beginning<Replies>(call, wait, reply))) return;
      if (!is_partial) return reply(std::move(replies));
      replying<Replies>(creating(context, parts, CreateMode::each_but_held), reply)(stores);
    };
    beginning<Replies>(call, creating(context, parts, first), take_first)(stores);
  };
}

// `here`: if the caller is a thread of a database, the stores of that database; otherwise nullptr.
void create_parts(ApiContext& context, const CallPtr& call, const std::shared_ptr<Batch>& batch, bool is_partial,
                  Stores* here) {
  if (batch->jobs.empty()) return BatchAnswer(context, *batch, {}, is_partial).answer(call, {});
  const auto parts = std::make_shared<const Parts>(parts_of(context, std::move(batch->jobs)));
  // If all jobs go to the database of this thread, they are created at once.
  const bool is_here = here != nullptr && parts->size() == 1 && parts->begin()->first == here->database_id;
  const Ask<Replies> ask = [&context, call, parts, is_partial, is_here, here](DatabaseId database_id,
                                                                              TakeReplies reply) {
    auto work = creating_soon(context, call, parts, is_partial, database_id, std::move(reply));
    if (!is_here) return context.backend.post(database_id, std::move(work));
    work(*here);
    return true;
  };
  const auto done = [&context, call, batch, parts, is_partial](const std::vector<DatabaseAnswer<Replies>>& answers) {
    BatchAnswer(context, *batch, *parts, is_partial).answer(call, answers);
  };
  gather<Replies>(context, call, databases_of(*parts), ask, done);
}

// create_parts(), after jobs with the same idempotency keys that SQL callers created and that wait in an outbox.
void create_known(ApiContext& context, const CallPtr& call, const std::shared_ptr<Batch>& batch, bool is_partial,
                  Stores* here) {
  if (const auto problem = batch->first_problem(); problem && !is_partial) return call->refuse(*problem);
  std::vector<EntryQuery> queries;
  if (context.backend.database_ids().size() > 1)
    for (const NewJob& job : batch->jobs)
      if (job.idempotency_key) queries.push_back({0, job.biz_id});
  if (queries.empty()) return create_parts(context, call, batch, is_partial, here);
  const auto proceed = [&context, call, batch, is_partial](const Result<Backend::Unasked>& unasked) {
    guarded(call, [&] {
      if (!unasked) {
        const Problem problem = context.problem_of(unasked.error(), 0);
        if (!is_partial) return call->refuse(problem);
        batch->refuse_keyed(problem);
      }
      create_parts(context, call, batch, is_partial, nullptr);
    });
  };
  context.backend.after_outboxes(std::move(queries), proceed);
}

void create_batch(ApiContext& context, const CallPtr& call, Stores& stores, bool is_partial) {
  JsonDocument document(call->request.body, "attribute", is_partial ? "jobs" : "");
  const auto batch = std::make_shared<Batch>(read_batch(context, call, document, is_partial));
  call->request.body = {};
  if (document.problem()) return call->refuse(*document.problem());
  const auto catalog = context.backend.types();
  auto unknown = batch->unknown_names(*catalog);
  if (unknown.empty()) {
    batch->settle_types(*catalog, {});
    return create_known(context, call, batch, is_partial, &stores);
  }
  context.lookup.ask({.names = std::move(unknown)},
                     [&context, call, batch, is_partial](const std::optional<Problem>& problem) {
                       guarded(call, [&] {
                         batch->settle_types(*context.backend.types(), problem);
                         create_known(context, call, batch, is_partial, nullptr);
                       });
                     });
}

void create_batch(ApiContext& context, const CallPtr& call) {
  const std::string partial = call->parameter("partial").value_or("false");
  if (partial != "true" && partial != "false") return call->refuse({400, "Must be true or false.", "partial"});
  // A large body takes time to parse, so not on a network thread. On a thread of the control database, which has the
  // types, unless that database is down.
  const auto database_ids = context.backend.database_ids();
  const auto answering = std::ranges::find_if(
      database_ids, [&](DatabaseId database_id) { return context.backend.is_answering(database_id); });
  context.on_database(call, answering == database_ids.end() ? 0 : *answering,
                      [&context, call, is_partial = partial == "true"](Stores& stores) {
                        create_batch(context, call, stores, is_partial);
                      });
}

}  // namespace

std::vector<Route> job_batch_routes(ApiContext& context) {
  return {
      {.method = "POST",
       .path = "/v1/jobs/batch",
       .access = Access::produce,
       .audit = Audit::counted,
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
