// GET /v1/jobs and /v1/jobs/{job_id}.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "api/fan_out.h"
#include "api/job_json.h"
#include "api/page.h"
#include "api/query.h"
#include "api/resources.h"
#include "api/url.h"

namespace tocsin {
namespace {

// Where a list continues: for each database the id below which its jobs follow; absent: from its newest job.
using Position = std::map<DatabaseId, JobId>;

// Begins the cursors of a list, so that a cursor of another list, or of other filters, is refused.
std::string cursor_mark(const Call& call) {
  std::string mark = "job:";
  for (const char* const name : {"biz_id", "biz_type", "status", "from", "to"})
    if (const auto value = call.parameter(name)) mark += std::string(name) + '=' + *value + '\n';
  return mark;
}

// The mark and "0=4711,1=815".
std::string cursor_text(const std::string& mark, const Position& position) {
  std::string text = mark;
  for (const auto& [database_id, id] : position)
    text += (text.size() == mark.size() ? "" : ",") + std::to_string(database_id) + '=' + std::to_string(id);
  return base64url(text);
}

std::optional<Position> position_from_cursor(const std::string& mark, const std::string& cursor) {
  const auto decoded = base64url_decoded(cursor);
  if (!decoded || !decoded->starts_with(mark)) return {};
  Position position;
  std::string_view rest = std::string_view(*decoded).substr(mark.size());
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::int64_t database_id = number_from(one.substr(0, equals)).value_or(-1);
    const std::int64_t id = equals < one.size() ? number_from(one.substr(equals + 1)).value_or(-1) : -1;
    if (database_id < 0 || database_id >= kMaxDatabases || id <= 0) return {};
    position[static_cast<DatabaseId>(database_id)] = id;
  }
  return position.empty() ? std::nullopt : std::optional(position);
}

// Reads the query parameters except biz_type, whose name must be looked up first.
std::optional<Problem> read_filter(const Call& call, JobFilter& filter, Position& position) {
  if ((filter.biz_id = call.parameter("biz_id")) && (filter.biz_id->empty() || filter.biz_id->size() > kMaxBizIdBytes))
    return Problem{400, "Must have 1 to 128 bytes.", "biz_id"};
  if (const auto name = call.parameter("status"); name && !(filter.status = job_status_from(*name)))
    return Problem{400, "Must be pending, running, done, cancelled or dead.", "status"};
  if (auto problem = read_time(call, "from", filter.from)) return problem;
  if (auto problem = read_time(call, "to", filter.to)) return problem;
  if (filter.from && filter.to && *filter.from > *filter.to) return Problem{400, "Must not lie after to.", "from"};
  if (const auto text = call.parameter("cursor")) {
    const auto from = position_from_cursor(cursor_mark(call), *text);
    if (!from) return Problem{400, "Must be a next_cursor of this list, with the same filters.", "cursor"};
    position = *from;
  }
  return read_limit(call, filter.limit);
}

// One page, and where the next one begins; nullopt: this is the last.
struct Page {
  std::vector<Job> jobs;
  std::optional<Position> next;
};

bool is_newer(const Job& a, const Job& b) {
  return std::tie(a.gmt_create, a.job_id) > std::tie(b.gmt_create, b.job_id);
}

// `missing`: as members of an object, what write_missing() writes.
std::string page_text(const Call& call, const Page& page, const TypeCatalog& catalog, const std::string& missing) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  for (const Job& job : page.jobs) write_job(out, job, catalog);
  out.end_array().key("next_cursor");
  page.next ? out.value(cursor_text(cursor_mark(call), *page.next)) : out.null();
  if (!missing.empty()) out.members(missing);
  out.end_object();
  return text;
}

using Found = JobList;  // of one database, by descending id: newest first to within half a second

// Merges the lists of all databases into a page of the newest jobs. `asked`: how many jobs each database was asked for.
// A list that is cut ends the page with its last job: which jobs follow it is not known.
Page page_of(const std::vector<DatabaseAnswer<Found>>& answers, Position position, std::size_t limit,
             std::size_t asked) {
  Page page;
  std::vector<std::size_t> taken(answers.size(), 0);
  const auto has_more = [&](std::size_t i) { return answers[i].result && taken[i] < answers[i].result->jobs.size(); };
  const auto is_cut = [&](std::size_t i) { return answers[i].result && answers[i].result->is_cut && !has_more(i); };
  bool is_end = true;
  while (is_end && page.jobs.size() < limit) {
    std::optional<std::size_t> newest;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!has_more(i)) continue;
      if (!newest || is_newer(answers[i].result->jobs[taken[i]], answers[*newest].result->jobs[taken[*newest]]))
        newest = i;
    }
    if (!newest) break;
    page.jobs.push_back(answers[*newest].result->jobs[taken[*newest]++]);
    position[answers[*newest].database_id] = page.jobs.back().job_id;
    is_end = !is_cut(*newest);
  }
  // A page of the largest size cannot ask for one job more than it shows, so a full answer may not be the end.
  for (std::size_t i = 0; i < answers.size(); ++i)
    is_end = is_end && !has_more(i) && (asked > limit || taken[i] < asked);
  if (!is_end) page.next = std::move(position);
  std::ranges::sort(page.jobs, is_newer);
  return page;
}

// The jobs of a key are in one database, but in another after a move: its lists continue below the same id there.
Position position_of_key(const Position& position, DatabaseId database_id) {
  return position.empty() ? Position{} : Position{{database_id, position.begin()->second}};
}

// A list of a key from a database that its shard has left may be empty or old: refuses the call and returns true.
bool refused_as_moved(const ApiContext& context, const CallPtr& call, const std::string& biz_id, DatabaseId asked) {
  const DatabaseId now = context.database_of(biz_id);
  if (now == asked) return false;
  call->refuse(context.moved(now));
  return true;
}

// `unasked`: as of when_findable().
void list_all(ApiContext& context, const CallPtr& call, JobFilter filter, Position position,
              const Backend::Unasked& unasked) {
  const auto limit = static_cast<std::size_t>(filter.limit);
  filter.limit = std::min(filter.limit + 1, kMostPerPage);
  filter.is_local_only = !filter.biz_id && context.backend.database_ids().size() > 1;
  const auto database_ids =
      filter.biz_id ? std::vector{context.database_of(*filter.biz_id)} : context.backend.database_ids();
  if (filter.biz_id) position = position_of_key(position, database_ids.front());
  fan_out<Found>(
      context, call, database_ids,
      [filter, position](DatabaseId database_id, Stores& stores) {
        JobFilter here = filter;
        if (const auto below = position.find(database_id); below != position.end()) here.below = below->second;
        return stores.reports.list(here);
      },
      [&context, call, limit, filter, position, unasked](const std::vector<DatabaseAnswer<Found>>& answers) {
        if (refused_by_all(context, call, answers)) return;
        if (filter.biz_id && refused_as_moved(context, call, *filter.biz_id, answers.front().database_id)) return;
        std::string missing;
        JsonWriter names(missing);
        write_missing(names, context.backend, answers);
        write_names(names, "missing", context.backend, unasked);  // of a list by key, which asks one database
        const auto page =
            std::make_shared<const Page>(page_of(answers, position, limit, static_cast<std::size_t>(filter.limit)));
        context.with_catalog(call, page->jobs, [call, page, missing](const TypeCatalog& catalog) {
          call->reply(200, page_text(*call, *page, catalog, missing));
        });
      },
      0, RequestQueue::slow_reads);
}

// Whether the filter names a key, and neither status nor times. Such a request uses an index of its own, and shares
// statements with requests for other keys.
bool is_of_key_alone(const JobFilter& filter) { return filter.biz_id && !filter.status && !filter.from && !filter.to; }

void list_key(ApiContext& context, const CallPtr& call, const JobFilter& filter, const Position& begin,
              const Backend::Unasked& unasked) {
  const auto limit = static_cast<std::size_t>(filter.limit);
  const DatabaseId database_id = context.database_of(*filter.biz_id);
  const Position position = position_of_key(begin, database_id);
  const int asked = std::min(filter.limit + 1, kMostPerPage);
  const auto answer = [&context, call, biz_id = *filter.biz_id, limit, database_id, position, asked,
                       unasked](Result<KeyList> list) {
    guarded(call, [&] {
      if (!list) return call->refuse(context.problem_of(list.error(), database_id));
      if (refused_as_moved(context, call, biz_id, database_id)) return;
      std::vector<DatabaseAnswer<Found>> one(1);
      one.front() = {database_id, Found{std::move(list->jobs)}};
      const auto page = std::make_shared<Page>(page_of(one, position, limit, static_cast<std::size_t>(asked)));
      if (!page->next && list->unread_below) page->next = Position{{database_id, *list->unread_below}};
      std::string missing;
      JsonWriter names(missing);
      write_names(names, "missing", context.backend, unasked);
      context.with_catalog(call, page->jobs, [call, page, missing](const TypeCatalog& catalog) {
        call->reply(200, page_text(*call, *page, catalog, missing));
      });
    });
  };
  const auto below = position.find(database_id);
  const KeyQuery query{*filter.biz_id, filter.type_id,
                       below == position.end() ? std::nullopt : std::optional(below->second), asked};
  if (!context.backend.list_key(query, answer)) ApiContext::too_busy(call);
}

void list(ApiContext& context, const CallPtr& call, const JobFilter& filter, const Position& position) {
  if (!filter.biz_id) return list_all(context, call, filter, position, {});
  const auto list_its = [&context, call, filter, position](const Backend::Unasked& unasked) {
    is_of_key_alone(filter) ? list_key(context, call, filter, position, unasked)
                            : list_all(context, call, filter, position, unasked);
  };
  context.when_findable(call, {{0, *filter.biz_id}}, list_its);
}

void list(ApiContext& context, const CallPtr& call) {
  JobFilter filter;
  Position position;
  if (const auto problem = read_filter(*call, filter, position)) return call->refuse(*problem);
  const auto name = call->parameter("biz_type");
  if (!name) return list(context, call, filter, position);
  context.with_any_type(call, *name, "biz_type", [&context, call, filter, position](const BizType& type) mutable {
    filter.type_id = type.type_id;
    list(context, call, filter, position);
  });
}

// `is_last`: a job whose shard has moved meanwhile is not read once more.
void get(ApiContext& context, const CallPtr& call, JobId id, bool is_last) {
  const DatabaseId database_id = context.database_of(id);
  const auto answer = [&context, call, id, database_id, is_last](Result<std::optional<Job>> found) {
    guarded(call, [&] {
      if (!found) return call->refuse(context.problem_of(found.error(), database_id));
      if (const DatabaseId now = context.database_of(id); now != database_id)
        return is_last ? call->refuse(context.moved(now)) : get(context, call, id, true);
      if (!*found) return call->refuse(ApiContext::no_such_job());
      const auto job = std::make_shared<const Job>(std::move(**found));
      context.with_catalog(call, {job.get(), 1},
                           [call, job](const TypeCatalog& catalog) { call->reply(200, job_text(*job, catalog)); });
    });
  };
  if (!context.backend.get(id, answer)) ApiContext::too_busy(call);
}

void get(ApiContext& context, const CallPtr& call) {
  if (const JobId id = context.job_id_of(call); id != 0) get(context, call, id, false);
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
       .query = with_page_parameters(
           "Jobs", {{"biz_id", R"({"type":"string","minLength":1,"maxLength":128})", "Only of this key"},
                    {"biz_type", R"({"type":"string"})", "Only of this type"},
                    {"status", R"({"$ref":"#/components/schemas/JobStatus"})", "Only in this state"},
                    {"from", time, "action_time not before"},
                    {"to", time, "action_time before"}}),
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
