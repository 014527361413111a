#include "api/context.h"

#include <algorithm>

#include "api/job_json.h"
#include "ports/row_refusal.h"

namespace tocsin {

Problem ApiContext::busy() { return {429, "Too much is waiting for the database.", "", 1}; }

void ApiContext::run(Post post, const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const {
  if (const auto why = backend.unavailable_reason(database_id)) return call->refuse(problem_of(*why, database_id));
  const bool is_taken = (backend.*post)(
      database_id, [call, work = std::move(work)](Stores& stores) { guarded(call, [&] { work(stores); }); });
  if (!is_taken) too_busy(call);
}

void ApiContext::on_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const {
  run(&Backend::post, call, database_id, unless_gone(call, std::move(work)));
}

void ApiContext::read_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const {
  run(&Backend::post_read, call, database_id, unless_gone(call, std::move(work)));
}

void ApiContext::wait_on_control(const CallPtr& call, std::function<void(Stores&)> work) const {
  run(&Backend::post_waiting, call, 0, std::move(work));
}

void ApiContext::with_type(const CallPtr& call, const std::string& name, Refusal refusal,
                           std::function<void(const BizType&)> use) {
  if (const auto catalog = backend.types(); const BizType* type = catalog->find(name)) return use(*type);
  lookup.ask({.names = {name}}, [this, call, name, refusal = std::move(refusal),
                                 use = std::move(use)](const std::optional<Problem>& problem) {
    guarded(call, [&] {
      if (problem) return call->refuse(*problem);
      const auto catalog = backend.types();
      const BizType* type = catalog->find(name);
      type ? use(*type) : call->refuse(refusal(name));
    });
  });
}

void ApiContext::with_type(const CallPtr& call, const std::string& name, const std::string& field,
                           std::function<void(const BizType&)> use) {
  with_type(
      call, name, [field](const std::string& unknown) { return unknown_type(unknown, field); }, std::move(use));
}

void ApiContext::with_any_type(const CallPtr& call, const std::string& name, const std::string& field,
                               std::function<void(const BizType&)> use) {
  if (const auto catalog = backend.types(); const BizType* type = catalog->find_any(name)) return use(*type);
  lookup.ask({.names = {}, .any_names = {name}},
             [this, call, name, field, use = std::move(use)](const std::optional<Problem>& problem) {
               guarded(call, [&] {
                 if (problem) return call->refuse(*problem);
                 const auto catalog = backend.types();
                 const BizType* type = catalog->find_any(name);
                 type ? use(*type) : call->refuse(unknown_type(name, field));
               });
             });
}

void ApiContext::with_catalog(const CallPtr& call, std::span<const Job> jobs,
                              std::function<void(const TypeCatalog&)> use) {
  const auto catalog = backend.types();
  if (std::ranges::all_of(jobs, [&](const Job& job) { return catalog->find(job.type_id) != nullptr; }))
    return use(*catalog);
  lookup.ask({.names = {}, .any_names = {}, .has_unknown_ids = true},
             [this, call, use = std::move(use)](const std::optional<Problem>& problem) {
               guarded(call, [&] { problem ? call->refuse(*problem) : use(*backend.types()); });
             });
}

std::function<void(const Result<Backend::Unasked>&)> ApiContext::passing(
    const CallPtr& call, std::function<void(const Backend::Unasked&)> proceed) const {
  return [this, call, proceed = std::move(proceed)](const Result<Backend::Unasked>& unasked) {
    guarded(call, [&] { unasked ? proceed(*unasked) : call->refuse(problem_of(unasked.error(), 0)); });
  };
}

void ApiContext::after_outboxes(const CallPtr& call, std::vector<EntryQuery> queries,
                                std::function<void(const Backend::Unasked&)> proceed) const {
  backend.after_outboxes(std::move(queries), passing(call, std::move(proceed)));
}

void ApiContext::when_findable(const CallPtr& call, std::vector<EntryQuery> queries,
                               std::function<void(const Backend::Unasked&)> proceed) const {
  backend.when_findable(std::move(queries), passing(call, std::move(proceed)));
}

Problem ApiContext::unknown_type(const std::string& name, const std::string& field) {
  return {422, "There is no type \"" + name + "\".", field};
}

Problem ApiContext::problem_of(const Error& error, DatabaseId database_id) const {
  switch (error.code) {
    case ErrorCode::invalid:
      return {400, error.message, error.field};
    case ErrorCode::conflict:
      if (error.field == kInOutbox) return {503, error.message + ": repeat the request.", "", 1};
      // Without the message: the server's own names tables and indexes.
      return {503, "Another transaction holds what this needs: repeat the request.", "", 1};
    case ErrorCode::superseded:
      return {503, "Another process has taken this operation over: " + error.message, "", 1};
    case ErrorCode::moved:
      return {
          503,
          "The job's shard is moving to another database: repeat the request after a second (" + error.message + ").",
          "", 1};
    case ErrorCode::unavailable:
      if (error.field == kFull) return busy();
      if (error.field == kTooSlow)
        return {503,
                "This took too long. Ask for less: of jobs by biz_id, or by biz_type with status, from and to; of a "
                "report by type, from and to.",
                "", 1};
      if (error.field == kRefused)
        return {503, "The database " + backend.database_title(database_id) + " refuses to write this: " + error.message,
                "", 1};
      return {503, "The database " + backend.database_title(database_id) + " is not available: " + error.message, "",
              1};
    case ErrorCode::in_doubt:
      return {503, "The answer of the database " + backend.database_title(database_id) +
                       " was lost: this may or may not have happened. Repeat it with the same idempotency_key, or read "
                       "the job."};
  }
  return {500, "Internal error."};
}

void ApiContext::hint_if_soon(JobId job, TypeId type, WallTime fire_at) const {
  if (fire_at <= backend.now() + kHintWindow) backend.hint(job, type, fire_at);
}

Problem ApiContext::no_such_job() { return {404, "There is no such job."}; }

Problem ApiContext::missing_job(JobId id, DatabaseId asked) const {
  const DatabaseId now = database_of(id);
  return now == asked ? no_such_job() : moved(now);
}

Problem ApiContext::moved(DatabaseId now) const {
  return problem_of({ErrorCode::moved, "it has left the database that was asked", ""}, now);
}

JobId ApiContext::job_id_of(const CallPtr& call) const {
  const auto id = job_id_from_text(call->arguments[0]);
  if (id && may_exist(*id)) return *id;
  call->refuse(id ? no_such_job() : Problem{400, "A job_id is a string of digits.", "job_id"});
  return 0;
}

}  // namespace tocsin
