// Consumers of pull types lease jobs.
#include <algorithm>

#include "api/job_json.h"
#include "api/resources.h"
#include "api/type_json.h"
#include "core/lease_token.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMostJobs = 1000;  // in one answer
constexpr std::int64_t kLongestWaitMs = 60'000;
constexpr milliseconds kTimeToAnswer(10'000);  // beyond the wait, for a claim that is under way

std::string leased_text(const std::vector<ClaimedJob>& jobs, const TypeCatalog& catalog) {
  std::string text, lease;
  text.reserve(64 + jobs.size() * 640);
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  for (const ClaimedJob& claimed : jobs) {
    lease.clear();
    JsonWriter(lease)
        .field("lease_token", lease_token_text(claimed.token))
        .field("lease_until", rfc3339(claimed.job.fire_at));
    write_job(out, claimed.job, catalog, lease);
  }
  out.end_array().end_object();
  return text;
}

struct LeaseRequest {
  std::size_t max = 1;
  Duration wait{0};
  std::optional<Duration> ttr;
};

// An empty list means that no job is due. While no database answers that is not known, so the answer is 503.
void answer_without_jobs(const ApiContext& context, const CallPtr& call) {
  const auto database_ids = context.backend.database_ids();
  const bool is_known = std::ranges::any_of(
      database_ids, [&](DatabaseId database_id) { return context.backend.is_answering(database_id); });
  if (is_known) return call->reply(200, leased_text({}, *context.backend.types()));
  call->refuse({503, "No database answers: whether jobs are due is not known.", "", 1});
}

void lease(ApiContext& context, const CallPtr& call, const BizType& type, const LeaseRequest& request) {
  if (!type.is_pull()) {
    return call->refuse(
        {409, "Jobs of this type are not leased: its handler is " + type.handler_kind + ", not pull.", "name"});
  }
  const bool is_taken = context.backend.lease({type.type_id, request.max, request.wait, request.ttr.value_or(type.ttr),
                                               [call] { return call->respond.is_gone(); },
                                               [&context, call](const std::vector<ClaimedJob>& jobs) {
                                                 guarded(call, [&] {
                                                   if (jobs.empty()) return answer_without_jobs(context, call);
                                                   call->reply(200, leased_text(jobs, *context.backend.types()));
                                                 });
                                               }});
  if (!is_taken) call->refuse({429, "Too many consumers are waiting.", "", 1});
}

void lease(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  LeaseRequest request;
  request.max = static_cast<std::size_t>(in.require("max").integer("max", {1, kMostJobs}).value_or(1));
  request.wait = milliseconds(in.integer("wait_ms", {0, kLongestWaitMs}).value_or(0));
  if (const auto ms = in.integer("ttr_ms", {1, kMaxTtrMs})) request.ttr = milliseconds(*ms);
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  const std::string& name = call->arguments[0];
  const auto unknown = [](const std::string& type) {
    return Problem{404, "There is no type \"" + type + "\".", "name"};
  };
  context.with_type(call, name, unknown,
                    [&context, call, request](const BizType& type) { lease(context, call, type, request); });
}

}  // namespace

std::vector<Route> lease_routes(ApiContext& context) {
  return {
      {.method = "POST",
       .path = "/v1/types/{name}/lease",
       .access = Access::consume,
       .operation_id = "leaseJobs",
       .tag = "Pull",
       .summary = "Due jobs of a pull type, to be acknowledged before their leases end",
       .request = "LeaseJobs",
       .replies = {{200, "LeasedJobs"}},
       .errors = {404, 409, 429, 503},
       .reply_timeout = milliseconds(kLongestWaitMs) + kTimeToAnswer,
       .handler = [&context](const CallPtr& call) { lease(context, call); }},
  };
}

}  // namespace tocsin
