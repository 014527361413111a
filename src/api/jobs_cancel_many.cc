// POST /v1/jobs/cancel: the jobs of a business key, or jobs by id.
//
// A shard may move to another database while a request waits for a thread. Its rows leave the old database only when
// every node has the new map, so an answer is checked against the map once more: what the old database does not have
// any more may live in the other one, and is answered `locked` or 503, never as unknown.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <unordered_set>

#include "api/fan_out.h"
#include "api/job_json.h"
#include "api/resources.h"

namespace tocsin {
namespace {

constexpr std::size_t kCancelBody = 1 << 20;
constexpr std::size_t kManyChanged = 100;  // a call that changes more has a row of its own in the audit log

// What the request wants to cancel: the jobs of `key`, or, if it is null, `ids` jobs by id.
struct CancelFilter {
  const KeyCancel* key = nullptr;
  std::size_t ids = 0;
};

// For the audit log. Call before the reply.
void note_cancelled(const ApiContext& context, const CallPtr& call, std::size_t cancelled, const CancelFilter& filter) {
  call->audit.changed = static_cast<std::int64_t>(cancelled);
  call->audit.is_left_out = cancelled == 0;
  if (cancelled <= kManyChanged) return;
  const auto catalog = context.backend.types();
  const BizType* type = filter.key && filter.key->type ? catalog->find(*filter.key->type) : nullptr;
  JsonWriter out(call->audit.filter_json);
  out.begin_object();
  filter.key ? out.field("biz_id", filter.key->biz_id) : out.field("job_ids", filter.ids);
  if (type) out.field("biz_type", type->name);
  out.end_object();
}

bool is_of(CancelReply::Kind kind, const CancelReply& reply) { return reply.kind == kind; }
bool is_locked(const CancelReply& reply) { return is_of(CancelReply::Kind::locked, reply); }

// What an answer has besides the replies of the databases.
struct Unnamed {
  // Ids whose databases gave no answer or refuse their rows: nothing was done, or it is in doubt.
  std::vector<JobId> unavailable = {}, in_doubt = {};
  std::vector<std::string> impossible = {};  // ids as they were given: no job can have them
  bool has_more = false, has_more_finished = false;
  Backend::Unasked unasked = {};  // databases that may have further jobs of the key in their outboxes
};

void write_ids(JsonWriter& out, const char* name, const std::vector<JobId>& ids) {
  out.key(name).begin_array();
  for (const JobId id : ids) out.value(std::to_string(id));
  out.end_array();
}

void answer_cancelled(const ApiContext& context, const CallPtr& call, const CancelFilter& filter,
                      const std::vector<CancelReply>& replies, Unnamed unnamed) {
  for (const CancelReply& reply : replies) {
    if (is_of(CancelReply::Kind::refused, reply)) unnamed.unavailable.push_back(reply.job_id);
    if (is_of(CancelReply::Kind::in_doubt, reply)) unnamed.in_doubt.push_back(reply.job_id);
  }
  constexpr std::array kNames{
      std::pair{CancelReply::Kind::cancelled, "cancelled"}, std::pair{CancelReply::Kind::running, "running"},
      std::pair{CancelReply::Kind::finished, "finished"}, std::pair{CancelReply::Kind::not_found, "not_found"},
      std::pair{CancelReply::Kind::locked, "locked"}};
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  for (const auto& [kind, name] : kNames) {
    // Rare enough to be absent when there is none.
    if (kind == CancelReply::Kind::locked && std::ranges::none_of(replies, is_locked)) continue;
    out.key(name).begin_array();
    for (const CancelReply& reply : replies) {
      if (reply.kind == kind) out.value(std::to_string(reply.job_id));
    }
    if (kind == CancelReply::Kind::not_found)
      for (const std::string& given : unnamed.impossible) out.value(given);
    out.end_array();
  }
  if (!unnamed.unavailable.empty()) write_ids(out, "unavailable", unnamed.unavailable);
  if (!unnamed.in_doubt.empty()) write_ids(out, "in_doubt", unnamed.in_doubt);
  if (unnamed.has_more) out.field("more", true);
  if (unnamed.has_more_finished) out.field("more_finished", true);
  write_names(out, "missing", context.backend, unnamed.unasked);
  out.end_object();
  // Those in doubt may have been cancelled.
  const auto cancelled = std::ranges::count(replies, CancelReply::Kind::cancelled, &CancelReply::kind);
  note_cancelled(context, call, static_cast<std::size_t>(cancelled) + unnamed.in_doubt.size(), filter);
  call->reply(200, std::move(text));
}

using CancelReplies = std::vector<CancelReply>;
using IdsByDatabase = std::map<DatabaseId, std::vector<JobId>>;

void answer_cancels(const ApiContext& context, const CallPtr& call, const IdsByDatabase& ids,
                    std::vector<std::string> impossible, const std::vector<DatabaseAnswer<CancelReplies>>& answers) {
  if (refused_by_all(context, call, answers)) return;
  CancelReplies replies;
  Unnamed unnamed{.impossible = std::move(impossible)};
  for (const auto& answer : answers) {
    if (answer.result) {
      replies.insert(replies.end(), answer.result->begin(), answer.result->end());
      continue;
    }
    auto& list = is_in_doubt(answer) ? unnamed.in_doubt : unnamed.unavailable;
    list.insert(list.end(), ids.at(answer.database_id).begin(), ids.at(answer.database_id).end());
  }
  std::size_t asked = unnamed.impossible.size();
  for (const auto& [database_id, some] : ids) asked += some.size();
  answer_cancelled(context, call, {.ids = asked}, replies, std::move(unnamed));
}

// Replies name the ids that were asked for: an outbox entry that stands for another job has an id of its own.
Result<CancelReplies> cancel_asked(ClientStore& client_store, const std::vector<JobId>& ids, LockWait wait) {
  auto replies = client_store.cancel(ids, wait);
  for (std::size_t i = 0; replies && i < ids.size(); ++i) (*replies)[i].job_id = ids[i];
  return replies;
}

// For a database that has answered: jobs that it does not have, and whose shard has left it, become `locked`.
void doubt_missing(const ApiContext& context, DatabaseId database_id, CancelReplies& replies) {
  for (CancelReply& each : replies)
    if (is_of(CancelReply::Kind::not_found, each) && context.database_of(each.job_id) != database_id)
      each.kind = CancelReply::Kind::locked;
}

using TakeCancels = std::function<void(Result<CancelReplies>)>;

// The indices of the replies of this kind.
std::vector<std::size_t> indices_of(CancelReply::Kind kind, const CancelReplies& replies) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < replies.size(); ++i)
    if (is_of(kind, replies[i])) at.push_back(i);
  return at;
}

std::vector<JobId> jobs_at(const std::vector<std::size_t>& at, const CancelReplies& replies) {
  std::vector<JobId> jobs;
  jobs.reserve(at.size());
  for (const std::size_t i : at) jobs.push_back(replies[i].job_id);
  return jobs;
}

// `later`: the replies that replace those at the indices `at`.
CancelReplies merged(CancelReplies replies, const std::vector<std::size_t>& at, CancelReplies later) {
  for (std::size_t i = 0; i < at.size(); ++i) replies[at[i]] = std::move(later[i]);
  return replies;
}

// Passes the replies on, with the replies at the indices `at` replaced by `again`, the replies to a second try. If that
// failed, the first ones hold, but for jobs that it may have cancelled.
void take_again(const ApiContext& context, DatabaseId database_id, const CancelReplies& first,
                const std::vector<std::size_t>& at, Result<CancelReplies> again, const TakeCancels& reply) {
  if (!again && again.error().code == ErrorCode::in_doubt) {
    if (at.size() == first.size()) return reply(again.error());
    CancelReplies replies = first;
    for (const std::size_t i : at) replies[i].kind = CancelReply::Kind::in_doubt;
    return reply(std::move(replies));
  }
  if (!again) return reply(first);
  doubt_missing(context, database_id, *again);
  reply(merged(first, at, std::move(*again)));
}

// Passes the replies of a database on. Before that, jobs that other transactions hold locked are cancelled by threads
// that may wait for them; when too many requests wait there already, they stay `locked`.
void cancel_locked(ApiContext& context, DatabaseId database_id, Result<CancelReplies> replies,
                   const TakeCancels& reply) {
  if (!replies) return reply(replies.error());
  const auto at = indices_of(CancelReply::Kind::locked, *replies);
  const std::vector<JobId> locked = jobs_at(at, *replies);
  doubt_missing(context, database_id, *replies);
  if (locked.empty()) return reply(std::move(replies));
  const auto first = std::make_shared<const CancelReplies>(std::move(*replies));
  const bool is_taken = context.backend.post_waiting(
      database_id, replying<CancelReplies>(
                       [locked](Stores& stores) {
                         const auto wait =
                             stores.queued < kMostQueuedForLocks ? LockWait::some_seconds : LockWait::none;
                         return cancel_asked(stores.client_store, locked, wait);
                       },
                       [&context, database_id, first, at, reply](Result<CancelReplies> again) {
                         take_again(context, database_id, *first, at, std::move(again), reply);
                       }));
  if (!is_taken) reply(*first);
}

// Passes the replies of a database on. Before that, jobs that it does not have are looked for again, after the
// outboxes. A job is answered `locked` while it waits in an outbox, is locked or moving at that moment, or may wait in
// the outbox of a database that does not answer.
void cancel_missing(ApiContext& context, DatabaseId database_id, Result<CancelReplies> replies,
                    const TakeCancels& reply) {
  if (!replies || context.backend.database_ids().size() == 1) return reply(std::move(replies));
  const auto at = indices_of(CancelReply::Kind::not_found, *replies);
  if (at.empty()) return reply(std::move(replies));
  const std::vector<JobId> missing = jobs_at(at, *replies);
  std::vector<EntryQuery> queries;
  queries.reserve(missing.size());
  for (const JobId id : missing) queries.push_back({id, ""});
  for (const std::size_t i : at) (*replies)[i].kind = CancelReply::Kind::locked;  // until the second try answers
  const auto first = std::make_shared<const CancelReplies>(std::move(*replies));
  const auto cancel_again = [&context, database_id, missing, at, first,
                             reply](const Result<Backend::Unasked>& unasked) {
    if (!unasked || context.backend.unavailable_reason(database_id)) return reply(*first);
    // What is not found now may wait in the outbox of a database that was not asked.
    const auto take = [&context, database_id, at, first, reply,
                       is_all_asked = unasked->empty()](Result<CancelReplies> again) {
      for (std::size_t i = 0; again && !is_all_asked && i < again->size(); ++i)
        if (is_of(CancelReply::Kind::not_found, (*again)[i])) (*again)[i].kind = CancelReply::Kind::locked;
      take_again(context, database_id, *first, at, std::move(again), reply);
    };
    const auto work = replying<CancelReplies>(
        [missing](Stores& stores) { return cancel_asked(stores.client_store, missing, LockWait::none); }, take);
    if (!context.backend.post(database_id, work)) reply(*first);
  };
  context.backend.when_findable(std::move(queries), cancel_again);
}

// `texts`: ids as they were given. One that is given twice is answered once.
void cancel_ids(ApiContext& context, const CallPtr& call, const std::vector<std::string>& texts) {
  IdsByDatabase known;
  std::vector<std::string> impossible;
  std::unordered_set<JobId> seen;
  std::unordered_set<std::string> seen_texts;
  for (const std::string& text : texts) {
    const JobId id = job_id_from_text(text).value_or(0);
    if (!context.may_exist(id)) {
      if (seen_texts.insert(text).second) impossible.push_back(text);
    } else if (seen.insert(id).second) {
      known[context.database_of(id)].push_back(id);
    }
  }
  if (known.empty()) return answer_cancelled(context, call, {}, {}, {.impossible = impossible});
  const Ask<CancelReplies> ask = [&context, call, known](DatabaseId database_id,
                                                         std::function<void(Result<CancelReplies>)> reply) {
    return context.backend.post(
        database_id, beginning<CancelReplies>(
                         call,
                         [known](Stores& stores) {
                           return cancel_asked(stores.client_store, known.at(stores.database_id), LockWait::none);
                         },
                         [&context, database_id, reply](Result<CancelReplies> replies) {
                           cancel_locked(context, database_id, std::move(replies),
                                         [&context, database_id, reply](Result<CancelReplies> waited) {
                                           cancel_missing(context, database_id, std::move(waited), reply);
                                         });
                         }));
  };
  gather<CancelReplies>(context, call, databases_of(known), ask,
                        [&context, call, known, impossible](const std::vector<DatabaseAnswer<CancelReplies>>& answers) {
                          answer_cancels(context, call, known, impossible, answers);
                        });
}

// ---- by key: all jobs of a key live in one shard

void refuse_moved(const ApiContext& context, const CallPtr& call, const std::string& biz_id) {
  call->refuse(context.moved(context.database_of(biz_id)));
}

void answer_large_key(const ApiContext& context, const CallPtr& call, const KeyCancel& key,
                      const Backend::Unasked& unasked, const DatabaseAnswer<CancelAllReply>& answer) {
  const auto& [database_id, reply] = answer;
  if (!reply) return call->refuse(context.problem_of(reply.error(), database_id));
  const bool has_left = context.database_of(key.biz_id) != database_id;
  const auto is_cancelled = [](const CancelReply& each) { return is_of(CancelReply::Kind::cancelled, each); };
  if (has_left && std::ranges::none_of(reply->jobs, is_cancelled)) return refuse_moved(context, call, key.biz_id);
  answer_cancelled(
      context, call, {.key = &key}, reply->jobs,
      {.has_more = reply->has_more || has_left, .has_more_finished = reply->has_more_finished, .unasked = unasked});
}

// For a key that has more live jobs than may share a statement with other keys.
void cancel_large_key(ApiContext& context, const CallPtr& call, const KeyCancel& key, const Backend::Unasked& unasked) {
  using TakeReply = std::function<void(Result<CancelAllReply>)>;
  const Ask<CancelAllReply> ask = [&context, call, key](DatabaseId database_id, TakeReply take) {
    const auto cancel_rest = [&context, database_id, take](Result<CancelAllReply> first) {
      if (!first) return take(first.error());
      CancelReplies jobs = std::exchange(first->jobs, {});
      cancel_locked(context, database_id, std::move(jobs), [take, all = *first](Result<CancelReplies> replies) {
        if (!replies) return take(replies.error());
        CancelAllReply whole = all;
        whole.jobs = std::move(*replies);
        take(std::move(whole));
      });
    };
    return context.backend.post(
        database_id,
        beginning<CancelAllReply>(
            call, [key](Stores& stores) { return stores.client_store.cancel_all(key.biz_id, key.type); }, cancel_rest));
  };
  gather<CancelAllReply>(context, call, {context.database_of(key.biz_id)}, ask,
                         [&context, call, key, unasked](const std::vector<DatabaseAnswer<CancelAllReply>>& answers) {
                           answer_large_key(context, call, key, unasked, answers.front());
                         });
}

bool has_found_nothing(const KeyCancelReply& reply) {
  return reply.cancelled.empty() && reply.running.empty() && reply.finished.empty() && reply.locked.empty();
}

std::string cancelled_key_text(const Backend& backend, const KeyCancelReply& reply, const Backend::Unasked& unasked) {
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  write_ids(out, "cancelled", reply.cancelled);
  write_ids(out, "running", reply.running);
  write_ids(out, "finished", reply.finished);
  write_ids(out, "not_found", {});
  if (!reply.locked.empty()) write_ids(out, "locked", reply.locked);
  if (reply.has_more_finished) out.field("more_finished", true);
  write_names(out, "missing", backend, unasked);
  out.end_object();
  return text;
}

void cancel_key(ApiContext& context, const CallPtr& call, const KeyCancel& key, const Backend::Unasked& unasked) {
  const DatabaseId asked = context.database_of(key.biz_id);
  const auto answer = [&context, call, key, unasked, asked](const Result<KeyCancelReply>& result) {
    guarded(call, [&] {
      const DatabaseId now = context.database_of(key.biz_id);
      if (!result) return call->refuse(context.problem_of(result.error(), now));
      if (result->is_too_many) return cancel_large_key(context, call, key, unasked);
      if (now != asked && has_found_nothing(*result)) return refuse_moved(context, call, key.biz_id);
      note_cancelled(context, call, result->cancelled.size(), {.key = &key});
      call->reply(200, cancelled_key_text(context.backend, *result, unasked));
    });
  };
  if (!context.backend.cancel_key(key, answer)) ApiContext::too_busy(call);
}

void cancel_key(ApiContext& context, const CallPtr& call, const std::string& biz_id,
                const std::optional<std::string>& biz_type) {
  const auto cancel = [&context, call, biz_id](std::optional<TypeId> type) {
    const KeyCancel key{biz_id, type};
    context.when_findable(call, {{0, biz_id}}, [&context, call, key](const Backend::Unasked& unasked) {
      cancel_key(context, call, key, unasked);
    });
  };
  if (!biz_type) return cancel({});
  context.with_any_type(call, *biz_type, "biz_type", [cancel](const BizType& type) { cancel(type.type_id); });
}

void cancel_many(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  const auto biz_id = in.string_or_number("biz_id", 1, kMaxBizIdBytes);
  const auto biz_type = in.string("biz_type", 1, 128);
  const auto texts = in.strings("job_ids", kMostJobsPerCall);
  if (biz_id.has_value() == texts.has_value()) in.fail("biz_id", "Give biz_id or job_ids.");
  if (texts && biz_type) in.fail("biz_type", "Goes with biz_id only.");
  for (std::size_t i = 0; texts && i < texts->size(); ++i)
    if (!job_id_from_text((*texts)[i]))
      in.fail("job_ids[" + std::to_string(i) + ']', "A job_id is a string of digits.");
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  biz_id ? cancel_key(context, call, *biz_id, biz_type) : cancel_ids(context, call, *texts);
}

}  // namespace

std::vector<Route> job_cancel_routes(ApiContext& context) {
  return {{.method = "POST",
           .path = "/v1/jobs/cancel",
           .access = Access::produce,
           .audit = Audit::counted,
           .operation_id = "cancelJobs",
           .tag = "Jobs",
           .summary = "Cancel by business key or by ids",
           .request = "CancelJobs",
           .body_limit = kCancelBody,
           .replies = {{200, "CancelledJobs"}},
           .errors = {413, 422, 429, 503},
           .handler = [&context](const CallPtr& call) { cancel_many(context, call); }}};
}

}  // namespace tocsin
