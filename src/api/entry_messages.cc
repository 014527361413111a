#include "api/entry_messages.h"

#include <future>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/job_json.h"
#include "base/utf8.h"
#include "core/digest.h"

namespace tocsin {
namespace {

bool is_name(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && text.find('\0') == text.npos && is_utf8(text);
}

// The broker's id as a key that the store takes.
std::string key_of(const EntryMessage& message) {
  return is_name(message.id, kMaxKeyBytes) ? message.id : sha256_hex(message.id);
}

std::string biz_id_of(const EntryMessage& message, const std::string& key) {
  if (is_name(message.key, kMaxBizIdBytes)) return message.key;
  return key.size() <= kMaxBizIdBytes ? key : sha256_hex(key);
}

When read_delay(JsonObject& in, const EntryMessage& message, WallTime now) {
  constexpr auto kMostMs = std::chrono::duration_cast<std::chrono::milliseconds>(kMaxDelay).count();
  bool is_rounded = false;
  const auto at = in.time("action_time", &is_rounded);
  const auto delay_ms = in.integer("delayTime", {0, kMostMs});
  if (at && delay_ms) in.fail("delayTime", "Give action_time or delayTime, not both.");
  if (!at && !delay_ms) in.fail("delayTime", "Give delayTime or action_time.");
  const Duration delay = std::chrono::milliseconds(delay_ms.value_or(0));
  // A job that waited for the database longer than its delay gets a time in the past.
  if (!at && !message.sent_at) return {.at = {}, .in = delay - message.waited, .asked_in = delay};
  const WallTime due = at ? *at : *message.sent_at + delay;
  if (is_too_early(due, at && is_rounded) || due > now + kMaxDelay)
    in.fail(at ? "action_time" : "delayTime", "Must lie between 2000-01-01 and 50 years ahead.");
  // A producer that sends a message again sends it later.
  return {.at = due, .in = {}, .asked_in = at ? std::nullopt : std::optional(delay)};
}

std::string sentence(const Problem& problem) {
  return problem.field.empty() ? problem.detail : problem.field + ": " + problem.detail;
}

// nullptr: no such type. A name that this node does not know is looked up in the registry, because a refused message is
// lost for good.
Result<std::shared_ptr<const BizType>> type_of(ApiContext& context, const std::string& name) {
  const auto catalog = context.backend.types();
  if (const auto it = catalog->by_name.find(name); it != catalog->by_name.end()) return it->second;
  using Found = Result<std::shared_ptr<const BizType>>;
  const auto found = std::make_shared<std::promise<Found>>();
  context.lookup.ask({.names = {name}}, [&context, found, name](const std::optional<Problem>& problem) {
    if (problem) {
      found->set_value(Error{ErrorCode::unavailable, problem->detail, {}});
      return;
    }
    const auto now = context.backend.types();
    const auto it = now->by_name.find(name);
    found->set_value(it == now->by_name.end() ? nullptr : it->second);
  });
  return found->get_future().get();
}

// The job that a message asks for. Error invalid: why it can never be one.
Result<NewJob> job_of(ApiContext& context, const EntryMessage& message) {
  const auto refused = [](const Problem& problem) {
    return Error{ErrorCode::invalid, storable(sentence(problem), 500), {}};
  };
  JsonDocument document(message.body, "message");
  JsonObject in = document.root();
  const std::string name = in.require("realTopicName").string("realTopicName", 1, 128).value_or("");
  NewJob job;
  job.when = read_delay(in, message, context.backend.now());
  job.attribute_json = in.verbatim_text("message");
  if (job.attribute_json.size() > context.max_attribute_bytes)
    in.fail("message", "Has " + std::to_string(job.attribute_json.size()) + " bytes; at most " +
                           std::to_string(context.max_attribute_bytes) + ".");
  const auto biz_id = in.string_or_number("biz_id", 1, kMaxBizIdBytes);
  const auto attempts = in.integer("max_attempts", {1, kMaxAttempts});
  in.end();
  if (document.problem()) return refused(*document.problem());
  const auto found = type_of(context, name);
  if (!found) return found.error();
  const BizType* type = found->get();
  if (!type) return refused(ApiContext::unknown_type(name, "realTopicName"));
  job.type_id = type->type_id;
  job.max_attempts = static_cast<int>(attempts.value_or(type->max_attempts));
  job.has_own_max_attempts = attempts.has_value();
  job.idempotency_key = key_of(message);
  job.biz_id = biz_id ? *biz_id : biz_id_of(message, *job.idempotency_key);
  return job;
}

// Whether the job that has the message's id was made of this very message: its body was stored by a build that counted
// the deadline in another way.
bool is_repeat(const NewJob& asked, const CreateReply& reply) {
  if (reply.kind != CreateReply::Kind::key_reused || !reply.existing) return false;
  const Job& job = *reply.existing;
  const auto value_of = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  };
  return asked.when.at == job.action_time && asked.max_attempts == job.max_attempts &&
         value_of(asked.attribute_json) == value_of(job.attribute_json);
}

Result<EntryAnswer> answer_of(const ApiContext& context, const NewJob& job, const CreateReply& reply) {
  if (is_repeat(job, reply)) return EntryAnswer{EntryAnswer::Kind::existing, {}};
  if (reply.kind == CreateReply::Kind::type_removed) {
    // The copy of a type in another database is marked before the type itself, and again if the removal is refused.
    if (context.database_of(job.biz_id) != 0) return Error{ErrorCode::unavailable, "its type is being removed", {}};
    return EntryAnswer{EntryAnswer::Kind::refused, "realTopicName: the type was removed."};
  }
  if (reply.is_refused())
    return EntryAnswer{EntryAnswer::Kind::refused,
                       "Job " + std::to_string(reply.job_id) + " has this id and another body."};
  if (reply.kind != CreateReply::Kind::created) return EntryAnswer{EntryAnswer::Kind::existing, {}};
  context.hint_if_soon(reply.job_id, job.type_id, reply.fire_at);
  return EntryAnswer{};
}

}  // namespace

Result<std::vector<EntryAnswer>> create_jobs_from_messages(ApiContext& context,
                                                           std::span<const EntryMessage> messages) {
  struct Create {
    std::size_t index;  // among the messages
    NewJob job;
    std::future<Result<CreateReply>> reply;
  };
  std::vector<EntryAnswer> answers(messages.size());
  std::vector<Create> asked;
  std::optional<Error> failure;
  if (context.backend.now() == WallTime{}) return Error{ErrorCode::unavailable, "its clock is not known yet", {}};
  for (std::size_t i = 0; i < messages.size() && !failure; ++i) {
    const auto job = job_of(context, messages[i]);
    if (!job) {
      if (job.error().code == ErrorCode::invalid)
        answers[i] = {EntryAnswer::Kind::refused, job.error().message};
      else
        failure = job.error();
      continue;
    }
    // Creates that are asked for together share a transaction.
    const auto reply = std::make_shared<std::promise<Result<CreateReply>>>();
    if (!context.backend.create(*job, [reply](Result<CreateReply> result) { reply->set_value(std::move(result)); }))
      failure = too_many_requests();
    else
      asked.push_back({i, *job, reply->get_future()});
  }
  for (Create& each : asked) {
    const auto reply = each.reply.get();
    auto answer = reply ? answer_of(context, each.job, *reply) : reply.error();
    if (answer)
      answers[each.index] = std::move(*answer);
    else if (answer.error().code == ErrorCode::invalid)
      answers[each.index] = {EntryAnswer::Kind::refused, answer.error().message};
    else
      failure = answer.error();
  }
  if (failure) return *failure;
  return answers;
}

}  // namespace tocsin
