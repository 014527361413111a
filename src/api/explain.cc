// GET /v1/jobs/{job_id}/explain: why it has, or has not, fired.
#include "api/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/job_json.h"
#include "api/resources.h"
#include "core/duration_text.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

std::string last_error(const Job& job) {
  return job.errors.empty() || job.errors.back().message.empty() ? ""
                                                                 : " Last error: " + job.errors.back().message + ".";
}

std::string finished_reason(const Job& job) {
  const std::string when = job.finished_at ? " at " + rfc3339(*job.finished_at) : "";
  switch (job.status) {
    case JobStatus::done: {
      const std::string late =
          !job.started_at ? ""
          : *job.started_at < job.action_time
              ? ", first started " + duration_text(job.action_time - *job.started_at) +
                    " before its deadline, because it was run at once"
              : ", first started " + duration_text(*job.lateness()) + " after " +
                    (job.due_at() > job.action_time ? "its deadline, already past, was set" : "its deadline");
      return "Done" + when + " after " + std::to_string(job.attempts) + (job.attempts == 1 ? " attempt" : " attempts") +
             late + ".";
    }
    case JobStatus::cancelled:
      if (job.attempts == 0) return "Cancelled" + when + " before it started.";
      return "Cancelled" + when + " between attempts: " + std::to_string(job.attempts) + " of " +
             std::to_string(job.max_attempts) + " had started." + last_error(job);
    default:
      return "Dead" + when + " after " + std::to_string(job.attempts) + " of " + std::to_string(job.max_attempts) +
             " attempts." + last_error(job);
  }
}

std::string pause_reason(const BizType& type) {
  return "Its type " + type.name + " is paused" + (type.paused_until ? " until " + rfc3339(*type.paused_until) : "") +
         ".";
}

// The next scan finds a job that is due, or whose lease has ended, within this time. Afterwards nothing is announced.
constexpr Duration kNextScan = std::chrono::seconds(3);

std::string claim_expected(Duration overdue) {
  if (overdue <= kNextScan) return "It is about to be claimed by the node that owns its shard.";
  return "No node has claimed it yet: another transaction holds its row (a cancel or reschedule in SQL that has not "
         "ended), or the node that owns its shard is behind, or got no hint. A sweep looks for such jobs every 30 "
         "seconds, an audit of all lanes every 5 minutes.";
}

// Of a job whose last attempt has lost its lease.
std::string death_expected(Duration overdue) {
  if (overdue <= kNextScan) return "It was the last attempt, so the job is about to be dead.";
  return "It was the last attempt, but no node has made the job dead yet: another transaction holds its row, or the "
         "node that owns its shard is behind, or waits to write outcomes, or the database refuses the write. Behind a "
         "backlog or a pause a search that begins every 30 seconds looks for such jobs.";
}

// Why a due job does not run, or that it starts soon.
std::string due_reason(const BizType* type, WallTime now, const std::string& hold, const std::string& otherwise) {
  if (type != nullptr && type->is_paused(now)) return pause_reason(*type);
  return hold.empty() ? otherwise : "It waits: " + hold + ".";
}

std::string pending_reason(const Job& job, const BizType* type, WallTime now, const std::string& hold) {
  const std::string after = job.attempts > 0 ? " Attempt " + std::to_string(job.attempts) + " of " +
                                                   std::to_string(job.max_attempts) + " failed." + last_error(job)
                                             : "";
  const bool is_paused = type != nullptr && type->is_paused(now);
  if (job.fire_at > now) {
    const std::string what = job.attempts > 0 ? "Waits for its next attempt at " : "Not due yet: due at ";
    return what + rfc3339(job.fire_at) + ", in " + duration_text(job.fire_at - now) + "." + after +
           (is_paused ? " " + pause_reason(*type) : "");
  }
  const bool is_too_late = type != nullptr && type->is_too_late(job.fire_at, now);
  return "Overdue by " + duration_text(now - job.fire_at) + ". " +
         due_reason(type, now, hold, claim_expected(now - job.fire_at)) +
         (is_too_late ? " It is later than drop_older_than_ms allows, so it will be dead in place of running." : "") +
         after;
}

bool is_async_webhook(const BizType& type) {
  if (type.handler_kind != "webhook") return false;
  const auto handler = nlohmann::json::parse(type.handler_json, nullptr, /*allow_exceptions=*/false);
  return handler.is_object() && handler.value("async", nlohmann::json()) == true;
}

std::string running_reason(const Job& job, const BizType* type, WallTime now, const std::string& hold) {
  const std::string where = job.node ? " on node " + *job.node : "";
  const std::string attempt = "Attempt " + std::to_string(job.attempts) + " of " + std::to_string(job.max_attempts);
  const bool is_acknowledged_later = type != nullptr && (type->is_pull() || is_async_webhook(*type));
  if (job.fire_at > now && is_acknowledged_later)
    return attempt + (type->is_pull() ? " was leased to a consumer" : " was sent") + where +
           (type->is_pull() ? "" : ", and its receiver may acknowledge it later") +
           "; it waits for the acknowledgement until its lease ends at " + rfc3339(job.fire_at) + ", in " +
           duration_text(job.fire_at - now) + ".";
  if (job.fire_at > now)
    return attempt + " is running" + where + "; its lease lasts until " + rfc3339(job.fire_at) + ", another " +
           duration_text(job.fire_at - now) + ".";
  const std::string next = job.attempts >= job.max_attempts
                               ? death_expected(now - job.fire_at)
                               : "The job is due again, and counts as running until it is claimed. " +
                                     due_reason(type, now, hold, claim_expected(now - job.fire_at));
  return attempt + " started" + where + ", and its lease ended " + duration_text(now - job.fire_at) +
         " ago without a result. " + next;
}

void write_limits(JsonWriter& out, const BizType* type, std::optional<int> running, WallTime now) {
  out.key("limits");
  if (type == nullptr) {
    out.null();
    return;
  }
  out.begin_object();
  out.field("max_attempts", type->max_attempts)
      .field("max_running", type->max_running)
      .field("running", running)
      .field("rate_per_s", type->rate_per_s);
  out.key("catch_up").begin_object().key("drop_older_than_ms");
  type->drop_older_than ? out.value(type->drop_older_than->count() / 1000) : out.null();
  out.field("rate_per_s", type->catch_up_rate_per_s).end_object();
  const bool is_paused = type->is_paused(now);
  out.field("paused", is_paused).key("paused_until");
  is_paused && type->paused_until ? out.value(rfc3339(*type->paused_until)) : out.null();
  out.field("ttr_ms", type->ttr.count() / 1000).end_object();
}

std::string explain_text(const Backend& backend, const Job& job, const TypeCatalog& catalog) {
  const BizType* type = catalog.find(job.type_id);
  const WallTime now = backend.now();
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  out.field("job_id", std::to_string(job.job_id)).field("status", to_string(job.status));
  out.field("reason", explain_reason(job, type, now, backend.hold_reason(job)));
  out.field("shard", job.shard())
      .field("node", backend.shard_owner(job.shard()))
      .field("database", backend.database_name(backend.database_of(job.shard())));
  out.key("next_attempt_at");
  // A running job is tried again when its lease ends without a result.
  is_final(job.status) ? out.null() : out.value(rfc3339(job.fire_at));
  out.field("attempts_left", is_final(job.status) ? 0 : std::max(job.max_attempts - job.attempts, 0));
  write_limits(out, type, backend.running(job.type_id), now);
  write_errors(out, job);
  out.key("job");
  write_job(out, job, catalog);
  out.end_object();
  return text;
}

void explain_found(ApiContext& context, const CallPtr& call, const Job& found) {
  context.with_catalog(call, {&found, 1}, [&context, call, job = found](const TypeCatalog& catalog) {
    call->reply(200, explain_text(context.backend, job, catalog));
  });
}

// Calls `missing` when the job's database does not have it.
void explain(ApiContext& context, const CallPtr& call, JobId id, std::function<void(DatabaseId)> missing) {
  context.read_database(call, context.database_of(id),
                        [&context, call, id, missing = std::move(missing)](Stores& stores) {
                          const auto job = stores.reports.find(id);
                          if (!job) return call->refuse(context.problem_of(job.error(), stores.database_id));
                          *job ? explain_found(context, call, **job) : missing(stores.database_id);
                        });
}

void explain(ApiContext& context, const CallPtr& call) {
  const JobId id = context.job_id_of(call);
  if (id == 0) return;
  const auto look_again = [&context, call, id](const Backend::Unasked& unasked) {
    explain(context, call, id, [&context, call, id, unasked](DatabaseId asked) {
      call->refuse(unasked.empty()
                       ? context.missing_job(id, asked)
                       : context.problem_of(maybe_in_outbox(context.backend.database_name(unasked.front())), asked));
    });
  };
  explain(context, call, id, [&context, call, id, look_again](DatabaseId asked) {
    if (context.backend.database_ids().size() == 1) return call->refuse(context.missing_job(id, asked));
    context.when_findable(call, {{id, ""}}, look_again);
  });
}

}  // namespace

std::string explain_reason(const Job& job, const BizType* type, WallTime now, const std::string& hold) {
  if (is_final(job.status)) return finished_reason(job);
  return job.status == JobStatus::running ? running_reason(job, type, now, hold) : pending_reason(job, type, now, hold);
}

std::vector<Route> explain_routes(ApiContext& context) {
  return {{.method = "GET",
           .path = "/v1/jobs/{job_id}/explain",
           .access = Access::read,
           .operation_id = "explainJob",
           .tag = "Jobs",
           .summary = "Why it has, or has not, fired",
           .replies = {{200, "Explanation"}},
           .errors = {404, 429, 503},
           .handler = [&context](const CallPtr& call) { explain(context, call); }}};
}

}  // namespace tocsin
