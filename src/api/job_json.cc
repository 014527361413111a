#include "api/job_json.h"

#include <algorithm>
#include <charconv>

#include "api/time_text.h"
#include "base/names.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

constexpr std::string_view kAttribute = "attribute";

constexpr const char* kConflictRules[] = {"keep", "replace", "earliest", "latest", "reject"};  // of OnConflict

void write_time(JsonWriter& out, std::string_view name, const std::optional<WallTime>& time) {
  out.key(name);
  if (!time) {
    out.null();
    return;
  }
  std::string text = "\"";
  append_rfc3339(text, *time);
  out.raw(text += '"');
}

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == text.npos; }
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

}  // namespace

void write_errors(JsonWriter& out, const Job& job) {
  out.key("errors").begin_array();
  for (const JobError& error : job.errors) {
    out.begin_object();
    out.field("at", error.at).field("node", error.node).field("attempt", error.attempt).field("message", error.message);
    out.key("started_at");
    error.started_at.empty() ? out.null() : out.value(error.started_at);
    out.end_object();
  }
  out.end_array();
}

void write_job(JsonWriter& out, const Job& job, const TypeCatalog& catalog, std::string_view more) {
  const BizType* type = catalog.find(job.type_id);
  out.begin_object();
  out.field("job_id", std::to_string(job.job_id)).field("biz_id", job.biz_id);
  const std::string& name = type != nullptr ? type->name : job.biz_type;
  out.key("biz_type");
  name.empty() ? out.null() : out.value(name);  // null: of a type that this node does not know yet
  out.field("status", to_string(job.status));
  write_time(out, "action_time", job.action_time);
  write_time(out, "fire_at", job.fire_at);
  out.field("attempts", job.attempts).field("max_attempts", job.max_attempts);
  out.key(kAttribute).raw_or_null(job.attribute_json);
  out.field("idempotency_key", job.idempotency_key).field("shard", job.shard()).field("node", job.node);
  write_time(out, "gmt_create", job.gmt_create);
  write_time(out, "gmt_modified", job.gmt_modified);
  write_time(out, "started_at", job.started_at);
  write_time(out, "last_started_at", job.last_started_at);
  write_time(out, "finished_at", job.finished_at);
  out.key("lateness_ms");
  const auto lateness = job.lateness();
  lateness ? out.value(to_ms(*lateness)) : out.null();
  write_errors(out, job);
  if (!more.empty()) out.members(more);
  out.end_object();
}

std::string job_text(const Job& job, const TypeCatalog& catalog) {
  std::string text;
  text.reserve(512 + job.attribute_json.size());
  JsonWriter out(text);
  write_job(out, job, catalog);
  return text;
}

std::optional<JobId> job_id_from_text(std::string_view text) {
  if (text.empty() || text.size() > 40 || text.find_first_not_of("0123456789") != text.npos) return {};
  if (text.front() == '0') return 0;  // no id has a leading zero
  JobId id = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), id);
  return end.ec == std::errc() ? id : 0;
}

When read_when(JsonObject& in, WallTime now) {
  bool is_rounded = false;
  const auto at = in.time("action_time", &is_rounded);
  const auto delay_ms =
      in.integer("delay_ms", {0, std::chrono::duration_cast<std::chrono::milliseconds>(kMaxDelay).count()});
  if (at && delay_ms) in.fail("delay_ms", "Give action_time or delay_ms, not both.");
  if (!at && !delay_ms) in.fail("action_time", "Give action_time or delay_ms.");
  if (at && (is_too_early(*at, is_rounded) || *at > now + kMaxDelay))
    in.fail("action_time", "Must lie between 2000-01-01 and 50 years ahead.");
  if (at) return {.at = at, .in = {}};
  return {.at = {}, .in = std::chrono::milliseconds(delay_ms.value_or(0))};
}

JobRequest read_job(JsonObject& in, WallTime now, std::size_t max_attribute_bytes) {
  JobRequest request;
  NewJob& job = request.job;
  request.biz_type = in.require("biz_type").string("biz_type", 1, 128).value_or("");
  job.biz_id = in.require("biz_id").string_or_number("biz_id", 1, kMaxBizIdBytes).value_or("");
  job.when = read_when(in, now);
  if (const auto attempts = in.integer("max_attempts", {1, kMaxAttempts})) {
    job.max_attempts = static_cast<int>(*attempts);
    job.has_own_max_attempts = true;
  }
  job.attribute_json = in.verbatim_text(kAttribute);
  if (job.attribute_json.size() > max_attribute_bytes)
    in.fail(kAttribute, "Has " + std::to_string(job.attribute_json.size()) + " bytes; at most " +
                            std::to_string(max_attribute_bytes) + ".");
  job.idempotency_key = in.string("idempotency_key", 1, kMaxKeyBytes);
  if (const auto name = in.string("on_conflict", 0, 64)) {
    const auto rule = value_named<OnConflict>(kConflictRules, *name);
    if (!rule) in.fail("on_conflict", "Must be keep, replace, earliest, latest or reject.");
    if (!job.idempotency_key)
      in.fail("on_conflict", "Needs an idempotency_key: without one nothing can be in conflict.");
    job.on_conflict = rule.value_or(OnConflict::keep);
  }
  in.end();
  return request;
}

Job created_job(const NewJob& job, const CreateReply& reply) {
  Job made;
  made.job_id = reply.job_id;
  made.biz_id = job.biz_id;
  made.type_id = job.type_id;
  made.action_time = reply.action_time;
  made.fire_at = reply.fire_at;
  made.max_attempts = job.max_attempts;
  made.attribute_json = job.attribute_json;
  made.idempotency_key = job.idempotency_key;
  made.traceparent = job.traceparent;
  made.gmt_create = made.gmt_modified = reply.gmt_create;
  return made;
}

bool is_traceparent(std::string_view text) {
  if (text.size() != 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), parent = text.substr(36, 16),
                         flags = text.substr(53);
  return is_hex(version) && version != "ff" && is_hex(trace) && !is_zero(trace) && is_hex(parent) && !is_zero(parent) &&
         is_hex(flags);
}

}  // namespace tocsin
