// What consumers report of their leases: ack, nack, extend.
#include <map>
#include <memory>
#include <unordered_set>

#include "api/fan_out.h"
#include "api/job_json.h"
#include "api/resources.h"
#include "api/type_json.h"
#include "base/names.h"
#include "base/utf8.h"
#include "core/lease_token.h"
#include "core/retry_policy.h"

namespace tocsin {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMostItems = 1000;        // in one report
constexpr std::size_t kSettleBody = 8 << 20;     // as many items as there may be, with their errors
constexpr std::size_t kLongestError = 64 << 10;  // taken; less is kept

struct ReportedLease {
  std::string job_id;  // as it was given
  Lease lease;
  bool may_hold = false;  // id and token have the form of a lease; otherwise it is stale
  std::optional<Duration> delay;
  std::string error;
};

enum class Fields { bare, with_outcome };

std::vector<ReportedLease> read_items(ApiContext& context, JsonObject& in, Fields fields) {
  std::vector<ReportedLease> items;
  std::unordered_set<JobId> seen;
  auto objects = in.require("items").objects("items", kMostItems);
  if (!objects) return items;
  for (JsonObject& object : *objects) {
    ReportedLease& item = items.emplace_back();
    const auto id_text = object.require("job_id").string("job_id", 1, 40);
    const auto id = id_text ? job_id_from_text(*id_text) : std::nullopt;
    if (id_text && !id) object.fail("job_id", "A job_id is a string of digits.");
    const auto token = object.require("lease_token").string("lease_token", 1, 128);
    if (fields == Fields::with_outcome) {
      constexpr auto kLongestDelay = std::chrono::duration_cast<milliseconds>(kLongestBackoff);
      if (const auto ms = object.integer("delay_ms", {0, kLongestDelay.count()})) item.delay = milliseconds(*ms);
      item.error = storable(object.string("error", 0, kLongestError).value_or(""), kLongestJobError);
    }
    object.end();
    if (!id || !token) continue;
    if (*id != 0 && !seen.insert(*id).second) object.fail("job_id", "Is given twice.");
    const auto bits = lease_token_from_text(*token);
    item.may_hold = context.may_exist(*id) && bits;
    item.lease = {*id, bits.value_or(0)};
    item.job_id = *id_text;
  }
  return items;
}

// The leases of the items that may hold, and the index of each in the items. (Other items name no possible lease.)
struct HeldLeases {
  std::vector<Lease> leases;
  std::vector<std::size_t> indices;
};

HeldLeases held_of(const std::vector<ReportedLease>& items) {
  HeldLeases held;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].may_hold) continue;
    held.leases.push_back(items[i].lease);
    held.indices.push_back(i);
  }
  return held;
}

using Items = std::vector<ReportedLease>;
// Results of the items of one database, in their order; nullopt: not tried, answered as "unavailable".
using LeaseReplies = std::vector<std::optional<LeaseReply>>;
using Settled = Result<LeaseReplies>;
using OnSettled = std::function<void(Settled)>;
// Writes the items of one database. False: its queue is full, and no reply comes. REQUIRES: `items` outlive the reply.
using Settle = std::function<bool(const ApiContext&, DatabaseId, const Items& items, OnSettled reply)>;

// Runs `note`, which may throw: a lease that was written is answered as written all the same.
template <class Note>
void take_note(const Note& note) {
  try {
    note();
  } catch (const std::exception&) {  // no memory: the lease table forgets leases that have ended
  }
}

// Outcomes of some items of a call.
struct Outcomes {
  std::vector<FinishRequest> requests;
  std::vector<std::size_t> indices;  // of the requests, among the items
};

void note_finished(const ApiContext& context, const Outcomes& outcomes, const std::vector<LeaseResult>& results) {
  using Ending = EventSink::Ending;
  std::map<std::pair<TypeId, Ending>, std::int64_t> endings;
  std::vector<Lease> ended;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind != LeaseReply::applied) continue;
    const FinishRequest& request = outcomes.requests[i];
    ended.push_back({request.job_id, request.token});
    const Ending ending = request.kind == FinishRequest::Kind::done   ? Ending::done
                          : request.kind == FinishRequest::Kind::dead ? Ending::dead
                                                                      : Ending::retry;
    ++endings[{results[i].type_id, ending}];
  }
  for (const auto& [what, n] : endings) {
    const auto [type, ending] = what;
    context.backend.note_outcomes(type, ending, n);
    context.backend.count(ending == Ending::done   ? Counter::finished_done
                          : ending == Ending::dead ? Counter::finished_dead
                                                   : Counter::finished_retry,
                          n);
  }
  context.backend.note_ended(ended);
}

// `settled` has the replies to the items without an outcome.
bool finish(const ApiContext& context, DatabaseId database_id, const Outcomes& outcomes, LeaseReplies settled,
            const OnSettled& reply) {
  if (outcomes.requests.empty()) return reply(std::move(settled)), true;
  return context.backend.finish_leases(
      database_id, outcomes.requests,
      [&context, outcomes, settled = std::move(settled), reply](Result<std::vector<LeaseResult>> replies) mutable {
        if (!replies) return reply(replies.error());
        for (std::size_t i = 0; i < outcomes.indices.size(); ++i) settled[outcomes.indices[i]] = (*replies)[i].kind;
        take_note([&] { note_finished(context, outcomes, *replies); });
        reply(std::move(settled));
      });
}

bool ack(const ApiContext& context, DatabaseId database_id, const Items& items, OnSettled reply) {
  const HeldLeases held = held_of(items);
  Outcomes outcomes{{}, held.indices};
  for (const Lease& lease : held.leases) outcomes.requests.push_back({lease.job_id, lease.token, {}, {}, {}});
  return finish(context, database_id, outcomes, LeaseReplies(items.size(), LeaseReply::stale), reply);
}

// A failed attempt leads to a retry or to a dead job, depending on the number of attempts, which is read before the
// write. That is safe: while the token is valid, no other transaction can change the number.
Outcomes outcomes_of_failure(const ApiContext& context, const Items& items, const HeldLeases& held,
                             const std::vector<std::optional<LeasedJob>>& leased, std::vector<TypeId>& types) {
  const auto catalog = context.backend.types();
  Outcomes outcomes;
  for (std::size_t i = 0; i < held.leases.size(); ++i) {
    const auto& job = leased[i];
    if (!job || job->type_id == 0) continue;
    const ReportedLease& item = items[held.indices[i]];
    const BizType* type = catalog->find(job->type_id);
    Random random(static_cast<std::uint64_t>(item.lease.token));  // the token is chance enough for the jitter
    const Duration backoff = backoff_delay(type ? type->backoff : Backoff{}, job->attempts, random);
    outcomes.requests.push_back(
        {item.lease.job_id, item.lease.token,
         job->attempts < job->max_attempts ? FinishRequest::Kind::retry : FinishRequest::Kind::dead,
         item.delay.value_or(backoff), item.error.empty() ? "nack" : item.error});
    outcomes.indices.push_back(held.indices[i]);
    types.push_back(job->type_id);
  }
  return outcomes;
}

// A retry may be due before the next scan. The hint names a slightly later time, because the claim of a job that is not
// due yet by the database's clock would fail.
void hint_retries(const ApiContext& context, const Outcomes& outcomes, const std::vector<TypeId>& types) {
  constexpr Duration kSafely = milliseconds(2);
  for (std::size_t i = 0; i < outcomes.requests.size(); ++i) {
    const FinishRequest& request = outcomes.requests[i];
    if (request.kind == FinishRequest::Kind::retry)
      context.hint_if_soon(request.job_id, types[i], context.backend.now() + request.delay + kSafely);
  }
}

// Continues with the jobs behind the leases.
bool with_leased(const ApiContext& context, DatabaseId database_id, const HeldLeases& held, const OnSettled& reply,
                 std::function<void(const std::vector<std::optional<LeasedJob>>&)> next) {
  using Leased = std::vector<std::optional<LeasedJob>>;
  return context.backend.read_leases(database_id, held.leases,
                                     [reply, next = std::move(next)](const Result<Leased>& leased) {
                                       if (!leased) return reply(leased.error());
                                       next(*leased);
                                     });
}

bool nack(const ApiContext& context, DatabaseId database_id, const Items& items, OnSettled reply) {
  const HeldLeases held = held_of(items);
  return with_leased(
      context, database_id, held, reply, [&context, database_id, &items, held, reply](const auto& leased) {
        std::vector<TypeId> types;
        const Outcomes outcomes = outcomes_of_failure(context, items, held, leased, types);
        LeaseReplies others(items.size(), LeaseReply::stale);
        for (std::size_t i = 0; i < held.indices.size(); ++i)
          if (leased[i] && leased[i]->type_id == 0) others[held.indices[i]] = LeaseReply::moved;
        const bool is_taken =
            finish(context, database_id, outcomes, others, [&context, outcomes, types, reply](Settled settled) {
              if (settled) take_note([&] { hint_retries(context, outcomes, types); });
              reply(std::move(settled));
            });
        if (!is_taken) reply(too_many_requests());
      });
}

void note_extended(const ApiContext& context, const HeldLeases& held, const std::vector<LeaseResult>& replies,
                   Duration ttr) {
  std::map<TypeId, std::vector<Lease>> extended;
  for (std::size_t i = 0; i < held.indices.size(); ++i)
    if (replies[i].kind == LeaseReply::applied) extended[replies[i].type_id].push_back(held.leases[i]);
  // For types with max_running this node must know which consumers hold leases, in case the leasing node dies.
  const auto catalog = context.backend.types();
  for (const auto& [id, leases] : extended) {
    const BizType* type = catalog->find(id);
    if (type && type->max_running) context.backend.note_extended(id, leases, ttr);
  }
}

// `settled` has the replies to the items that are not in `held`.
bool extend(const ApiContext& context, DatabaseId database_id, const HeldLeases& held, LeaseReplies settled,
            Duration ttr, const OnSettled& reply) {
  if (held.leases.empty()) return reply(std::move(settled)), true;
  std::vector<Extension> extensions;
  for (const Lease& lease : held.leases) extensions.push_back({lease, ttr});
  return context.backend.extend_leases(
      database_id, std::move(extensions),
      [&context, held, settled = std::move(settled), ttr, reply](Result<std::vector<LeaseResult>> replies) {
        if (!replies) return reply(replies.error());
        LeaseReplies all = settled;
        for (std::size_t i = 0; i < held.indices.size(); ++i) all[held.indices[i]] = (*replies)[i].kind;
        take_note([&] { note_extended(context, held, *replies, ttr); });
        reply(std::move(all));
      });
}

// Does not extend leases of types with max_running while the control database cannot learn of it: it would give their
// permits to other nodes when the leases end as far as it knows. Only then the types of the leases are read first.
bool extend(const ApiContext& context, DatabaseId database_id, const Items& items, Duration ttr,
            const OnSettled& reply) {
  const HeldLeases held = held_of(items);
  const LeaseReplies stale(items.size(), LeaseReply::stale);
  const auto catalog = context.backend.types();
  const auto is_uncounted = [&context](const BizType* type) {
    return type != nullptr && type->max_running && !context.backend.are_leases_counted(type->type_id);
  };
  if (std::ranges::none_of(catalog->types, is_uncounted, [](const auto& type) { return type.get(); }))
    return extend(context, database_id, held, stale, ttr, reply);
  return with_leased(context, database_id, held, reply, [=, &context](const auto& leased) {
    HeldLeases counted;
    LeaseReplies settled = stale;
    for (std::size_t i = 0; i < held.leases.size(); ++i) {
      const auto& job = leased[i];
      if (job && is_uncounted(catalog->find(job->type_id))) {
        settled[held.indices[i]] = std::nullopt;
        continue;
      }
      counted.leases.push_back(held.leases[i]);
      counted.indices.push_back(held.indices[i]);
    }
    if (!extend(context, database_id, counted, settled, ttr, reply)) reply(too_many_requests());
  });
}

// The items of one database, and the index of each in the call.
struct LeasePart {
  Items items;
  std::vector<std::size_t> at;
};
using LeaseParts = std::map<DatabaseId, LeasePart>;

// Items that cannot hold go to any part: they are answered as stale.
LeaseParts parts_of(const ApiContext& context, Items items) {
  LeaseParts parts;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const DatabaseId database_id = items[i].may_hold ? context.database_of(items[i].lease.job_id)
                                   : parts.empty()   ? 0
                                                     : parts.begin()->first;
    LeasePart& part = parts[database_id];
    part.items.push_back(std::move(items[i]));
    part.at.push_back(i);
  }
  if (parts.empty()) parts[0];
  return parts;
}

constexpr const char* kResults[] = {"ok", "stale", "busy", "busy", "in_doubt", "unavailable"};  // of LeaseReply

// Result of each item: "ok"; "stale" (the lease is lost); "busy" (another transaction holds the row, or its shard is
// moving); "unavailable" (its database did not answer, or refuses to write the row); "in_doubt" (the database's answer
// was lost). After "in_doubt" the caller asks again; an item that was finished is answered "stale" then.
void answer(const ApiContext& context, const CallPtr& call, const LeaseParts& parts,
            const std::vector<DatabaseAnswer<LeaseReplies>>& answers) {
  if (refused_by_all(context, call, answers)) return;
  std::map<std::size_t, std::pair<const ReportedLease*, const char*>> results;
  std::int64_t stale = 0;
  for (const auto& answer : answers) {
    const auto& settled = answer.result;
    const LeasePart& part = parts.at(answer.database_id);
    for (std::size_t i = 0; i < part.items.size(); ++i) {
      const char* result = is_in_doubt(answer)        ? "in_doubt"
                           : settled && (*settled)[i] ? name_of(kResults, *(*settled)[i])
                                                      : "unavailable";
      stale += settled && (*settled)[i] == LeaseReply::stale;
      results[part.at[i]] = {&part.items[i], result};
    }
  }
  std::string text;
  JsonWriter out(text);
  out.begin_object().key("items").begin_array();
  for (const auto& [at, result] : results)
    out.begin_object().field("job_id", result.first->job_id).field("result", result.second).end_object();
  out.end_array().end_object();
  context.backend.count(Counter::stale_finishes, stale);
  call->reply(200, std::move(text));
}

void settle(const ApiContext& context, const CallPtr& call, Items items, const Settle& how) {
  const auto parts = std::make_shared<const LeaseParts>(parts_of(context, std::move(items)));
  gather<LeaseReplies>(
      context, call, databases_of(*parts),
      [&context, parts, how](DatabaseId database_id, const OnSettled& reply) {
        // The items live until the reply.
        return how(context, database_id, parts->at(database_id).items,
                   [parts, reply](Settled settled) { reply(std::move(settled)); });
      },
      [&context, call, parts](const std::vector<DatabaseAnswer<LeaseReplies>>& answers) {
        answer(context, call, *parts, answers);
      });
}

void settle(ApiContext& context, const CallPtr& call, Fields fields, const Settle& how) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  auto items = read_items(context, in, fields);
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  settle(context, call, std::move(items), how);
}

void extend(ApiContext& context, const CallPtr& call) {
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  auto items = read_items(context, in, Fields::bare);
  const Duration ttr = milliseconds(in.require("ttr_ms").integer("ttr_ms", {1, kMaxTtrMs}).value_or(1));
  in.end();
  if (document.problem()) return call->refuse(*document.problem());
  settle(context, call, std::move(items),
         [ttr](const ApiContext& about, DatabaseId database_id, const Items& some, const OnSettled& reply) {
           return extend(about, database_id, some, ttr, reply);
         });
}

Route settle_route(const std::string& verb, std::string operation_id, std::string summary, std::string request,
                   std::function<void(const CallPtr&)> handler) {
  return {.method = "POST",
          .path = "/v1/leases/" + verb,
          .access = Access::consume,
          .operation_id = std::move(operation_id),
          .tag = "Pull",
          .summary = std::move(summary),
          .request = std::move(request),
          .body_limit = kSettleBody,
          .replies = {{200, "LeaseResults"}},
          .errors = {413, 429, 503},
          .handler = std::move(handler)};
}

}  // namespace

std::vector<Route> lease_report_routes(ApiContext& context) {
  return {
      settle_route("ack", "ackLeases", "Leased jobs: done", "AckLeases",
                   [&context](const CallPtr& call) { settle(context, call, Fields::bare, ack); }),
      settle_route("nack", "nackLeases", "Leased jobs: failed; again later, or dead after the last attempt",
                   "NackLeases",
                   [&context](const CallPtr& call) { settle(context, call, Fields::with_outcome, nack); }),
      settle_route("extend", "extendLeases", "Leased jobs: more time", "ExtendLeases",
                   [&context](const CallPtr& call) { extend(context, call); }),
  };
}

}  // namespace tocsin
