// GET /v1/jobs and /v1/jobs/{job_id}.
#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>

#include "api/job_json.h"
#include "api/resources.h"
#include "api/scatter.h"
#include "api/time_text.h"
#include "api/url.h"

namespace tocsin {
namespace {

constexpr int kMaxPage = 1000;
constexpr std::string_view kCursorMark = "job:";  // so that a cursor of another list is not taken for one of this

std::string cursor_text(JobId last) { return base64url(std::string(kCursorMark) + std::to_string(last)); }

std::optional<JobId> job_from_cursor(const std::string& cursor) {
  const auto text = base64url_decoded(cursor);
  if (!text || !text->starts_with(kCursorMark)) return {};
  const auto id = job_id_from_text(std::string_view(*text).substr(kCursorMark.size()));
  return id && *id > 0 ? id : std::nullopt;
}

// In a query an unencoded "+01:00" arrives as " 01:00".
std::optional<WallTime> time_of(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '+');
  return time_from_text(text);
}

// What the query says, but for biz_type, which is still a name.
std::optional<Problem> read_filter(const Call& call, JobFilter& filter) {
  if ((filter.biz_id = call.parameter("biz_id")) && (filter.biz_id->empty() || filter.biz_id->size() > kMaxBizIdBytes))
    return Problem{400, "Must have 1 to 128 bytes.", "biz_id"};
  if (const auto name = call.parameter("status"); name && !(filter.status = job_status_from(*name)))
    return Problem{400, "Must be pending, running, done, cancelled or dead.", "status"};
  if (const auto text = call.parameter("from"); text && !(filter.from = time_of(*text)))
    return Problem{400, "Must be an RFC 3339 time with an offset.", "from"};
  if (const auto text = call.parameter("to"); text && !(filter.to = time_of(*text)))
    return Problem{400, "Must be an RFC 3339 time with an offset.", "to"};
  if (const auto text = call.parameter("cursor"); text && !(filter.below = job_from_cursor(*text)))
    return Problem{400, "Must be a next_cursor of this list.", "cursor"};
  if (const auto text = call.parameter("limit")) {
    const auto end = std::from_chars(text->data(), text->data() + text->size(), filter.limit);
    if (end.ec != std::errc() || end.ptr != text->data() + text->size() || filter.limit < 1 || filter.limit > kMaxPage)
      return Problem{400, "Must be 1 to 1000.", "limit"};
  }
  return {};
}

// `missing`: as members of an object, what write_missing() writes.
std::string page_text(const std::vector<Job>& jobs, std::size_t limit, const TypeCatalog& catalog,
                      const std::string& missing) {
  std::string text;
  JsonWriter out(text);
  const std::size_t n = std::min(jobs.size(), limit);
  out.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < n; ++i) write_job(out, jobs[i], catalog);
  out.end_array().key("next_cursor");
  // A page of the largest size cannot look one job ahead: a full one may be the last.
  const bool may_have_more = jobs.size() > limit || (n == limit && limit == kMaxPage);
  may_have_more ? out.value(cursor_text(jobs[n - 1].job_id)) : out.null();
  if (!missing.empty()) out.members(missing);
  out.end_object();
  return text;
}

using Page = std::vector<Job>;

// The newest of all pages together, as one database would give them.
Page merged(std::vector<DatabaseAnswer<Page>> answers, std::size_t limit) {
  if (answers.size() == 1) return std::move(*answers.front().result);
  Page all;
  for (auto& [place, page] : answers)
    if (page) std::move(page->begin(), page->end(), std::back_inserter(all));
  std::ranges::sort(all, std::greater(), &Job::job_id);
  if (all.size() > limit) all.resize(limit);
  return all;
}

void list_all(ApiContext& context, const CallPtr& call, JobFilter filter) {
  const auto limit = static_cast<std::size_t>(filter.limit);
  filter.limit = std::min(filter.limit + 1, kMaxPage);
  filter.is_local_only = !filter.biz_id && context.backend.places().size() > 1;
  const auto places = filter.biz_id ? std::vector{context.place_of(*filter.biz_id)} : context.backend.places();
  scatter<Page>(
      context, call, places,
      [&context, filter](Place, Stores& stores) {
        auto page = stores.reports.list(filter);
        if (page) static_cast<void>(context.catalog_for(stores, *page));  // reads the registry again if need be
        return page;
      },
      [&context, call, limit, filter](std::vector<DatabaseAnswer<Page>> answers) {
        if (refused_by_all(context, call, answers)) return;
        std::string missing;
        JsonWriter names(missing);
        write_missing(names, context.backend, answers);
        const Page page = merged(std::move(answers), static_cast<std::size_t>(filter.limit));
        call->reply(200, page_text(page, limit, *context.backend.types(), missing));
      },
      0, Pool::reads);
}

// The types of `jobs` are in the catalog that `use` gets: read again first, if it lacks one.
void with_catalog(ApiContext& context, const CallPtr& call, Place place, std::vector<Job> jobs,
                  std::function<void(const std::vector<Job>&, const TypeCatalog&)> use) {
  const auto catalog = context.backend.types();
  if (std::ranges::all_of(jobs, [&](const Job& job) { return catalog->find(job.type_id) != nullptr; }))
    return use(jobs, *catalog);
  context.read_database(call, place, [&context, jobs = std::move(jobs), use = std::move(use)](Stores& stores) {
    use(jobs, *context.catalog_for(stores, jobs));
  });
}

// The jobs of a key share an index and statements with those of other keys.
bool is_of_key_alone(const JobFilter& filter) { return filter.biz_id && !filter.status && !filter.from && !filter.to; }

void list_key(ApiContext& context, const CallPtr& call, const JobFilter& filter) {
  const auto limit = static_cast<std::size_t>(filter.limit);
  const Place place = context.place_of(*filter.biz_id);
  const auto answer = [&context, call, limit, place](Result<std::vector<Job>> jobs) {
    guarded(call, [&] {
      if (!jobs) return call->refuse(context.problem_of(jobs.error(), place));
      with_catalog(context, call, place, std::move(*jobs),
                   [call, limit](const std::vector<Job>& page, const TypeCatalog& catalog) {
                     call->reply(200, page_text(page, limit, catalog, ""));
                   });
    });
  };
  const KeyQuery query{*filter.biz_id, filter.type_id, filter.below, std::min(filter.limit + 1, kMaxPage)};
  if (!context.backend.list_key(query, answer)) ApiContext::too_busy(call);
}

void list(ApiContext& context, const CallPtr& call, const JobFilter& filter) {
  is_of_key_alone(filter) ? list_key(context, call, filter) : list_all(context, call, filter);
}

void list(ApiContext& context, const CallPtr& call) {
  JobFilter filter;
  if (const auto problem = read_filter(*call, filter)) return call->refuse(*problem);
  const auto name = call->parameter("biz_type");
  if (!name) return list(context, call, filter);
  context.with_type(call, *name, "biz_type", [&context, call, filter](const BizType& type) mutable {
    filter.type_id = type.type_id;
    list(context, call, filter);
  });
}

void get(ApiContext& context, const CallPtr& call) {
  const JobId id = context.job_id_of(call);
  if (id == 0) return;
  const Place place = context.place_of(id);
  const bool is_taken = context.backend.get(id, [&context, call, place](Result<std::optional<Job>> job) {
    guarded(call, [&] {
      if (!job) return call->refuse(context.problem_of(job.error(), place));
      if (!*job) return call->refuse(ApiContext::no_such_job());
      with_catalog(context, call, place, {std::move(**job)},
                   [call](const std::vector<Job>& jobs, const TypeCatalog& catalog) {
                     call->reply(200, job_text(jobs.front(), catalog));
                   });
    });
  });
  if (!is_taken) ApiContext::too_busy(call);
}

}  // namespace

std::vector<Route> job_read_routes(ApiContext& context) {
  const std::string time = R"({"type":"string","format":"date-time"})";
  return {
      {.method = "GET",
       .path = "/v1/jobs",
       .access = Access::read,
       .operation_id = "listJobs",
       .tag = "Jobs",
       .summary = "List jobs, newest first",
       .query = {{"biz_id", R"({"type":"string","minLength":1,"maxLength":128})", "Only of this key"},
                 {"biz_type", R"({"type":"string"})", "Only of this type"},
                 {"status", R"({"$ref":"#/components/schemas/JobStatus"})", "Only in this state"},
                 {"from", time, "action_time not before"},
                 {"to", time, "action_time before"},
                 {"limit", R"({"type":"integer","minimum":1,"maximum":1000,"default":100})", "Jobs per page"},
                 {"cursor", R"({"type":"string"})", "next_cursor of the page before"}},
       .replies = {{200, "JobPage"}},
       .errors = {422, 429, 503},
       .handler = [&context](const CallPtr& call) { list(context, call); }},
      {.method = "GET",
       .path = "/v1/jobs/{job_id}",
       .access = Access::read,
       .operation_id = "getJob",
       .tag = "Jobs",
       .summary = "One job",
       .replies = {{200, "Job"}},
       .errors = {404, 429, 503},
       .handler = [&context](const CallPtr& call) { get(context, call); }},
  };
}

}  // namespace tocsin
