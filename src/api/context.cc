#include "api/context.h"

#include <algorithm>

#include "api/job_json.h"

namespace tocsin {

void ApiContext::too_busy(const CallPtr& call) { call->refuse({429, "Too much is waiting for the database.", "", 1}); }

void ApiContext::on_database(const CallPtr& call, Place place, std::function<void(Stores&)> work) const {
  if (const auto why = backend.why_not(place)) return call->refuse(problem_of(*why, place));
  const bool is_taken =
      backend.post(place, [call, work = std::move(work)](Stores& stores) { guarded(call, [&] { work(stores); }); });
  if (!is_taken) too_busy(call);
}

void ApiContext::read_database(const CallPtr& call, Place place, std::function<void(Stores&)> work) const {
  if (const auto why = backend.why_not(place)) return call->refuse(problem_of(*why, place));
  const bool is_taken = backend.post_read(
      place, [call, work = std::move(work)](Stores& stores) { guarded(call, [&] { work(stores); }); });
  if (!is_taken) too_busy(call);
}

bool ApiContext::may_reload() {
  const Duration::rep now = backend.now().time_since_epoch().count();
  Duration::rep last = last_reload_;
  const bool is_recent = now - last < Duration(std::chrono::seconds(1)).count() && now >= last;
  return !is_recent && last_reload_.compare_exchange_strong(last, now);
}

std::shared_ptr<const BizType> ApiContext::find_type(Stores& stores, const std::string& name) {
  const auto find = [&]() -> std::shared_ptr<const BizType> {
    const auto catalog = backend.types();
    const auto it = catalog->by_name.find(name);
    return it == catalog->by_name.end() ? nullptr : it->second;
  };
  if (auto type = find()) return type;
  if (!may_reload()) return nullptr;
  static_cast<void>(backend.reload_types(stores));
  return find();
}

std::shared_ptr<const TypeCatalog> ApiContext::catalog_for(Stores& stores, std::span<const Job> jobs) {
  const auto catalog = backend.types();
  const bool is_whole =
      std::all_of(jobs.begin(), jobs.end(), [&](const Job& job) { return catalog->find(job.type_id) != nullptr; });
  if (is_whole || !may_reload()) return catalog;
  static_cast<void>(backend.reload_types(stores));
  return backend.types();
}

void ApiContext::with_type(const CallPtr& call, const std::string& name, const std::string& field,
                           std::function<void(const BizType&)> use) {
  if (const auto catalog = backend.types(); const BizType* type = catalog->find(name)) return use(*type);
  on_home(call, [this, call, name, field, use = std::move(use)](Stores& stores) {
    const auto type = find_type(stores, name);
    type ? use(*type) : call->refuse(unknown_type(name, field));
  });
}

Problem ApiContext::unknown_type(const std::string& name, const std::string& field) {
  return {422, "There is no type \"" + name + "\".", field};
}

Problem ApiContext::problem_of(const Error& error, Place place) const {
  switch (error.code) {
    case ErrorCode::invalid:
      return {400, error.message, error.field};
    case ErrorCode::conflict:
      if (error.field == kElsewhere)
        return {
            503,
            "The job's shard is moving to another database: repeat the request after a second (" + error.message + ").",
            "", 1};
      // What the server says of a lock names its tables and indexes.
      if (error.field == kLocked) return {503, "Another transaction holds what this needs: repeat the request.", "", 1};
      return {503, "Somebody else holds what this needs: " + error.message, "", 1};
    case ErrorCode::unavailable:
      if (error.field == kTooSlow)
        return {503, "This took too long. Of a list, name more: biz_id, or biz_type with status, from and to.", "", 1};
      return {503, "The database " + backend.database_title(place) + " is not available: " + error.message, "", 1};
    case ErrorCode::in_doubt:
      return {503, "The answer of the database " + backend.database_title(place) +
                       " was lost: this may or may not have happened. Repeat it with the same idempotency_key, or look "
                       "the job up."};
  }
  return {500, "Something unexpected happened."};
}

void ApiContext::hint_if_soon(JobId job, TypeId type, WallTime fire_at) const {
  if (fire_at <= backend.now() + kHintWindow) backend.hint(job, type, fire_at);
}

Problem ApiContext::no_such_job() { return {404, "There is no such job."}; }

JobId ApiContext::job_id_of(const CallPtr& call) const {
  const auto id = job_id_from_text(call->arguments[0]);
  if (id && may_exist(*id)) return *id;
  call->refuse(id ? no_such_job() : Problem{400, "A job_id is a string of digits.", "job_id"});
  return 0;
}

}  // namespace tocsin
