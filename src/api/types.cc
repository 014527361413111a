// /v1/types: the registry of kinds of timeout.
#include <algorithm>
#include <iterator>

#include "api/fan_out.h"
#include "api/handler_password.h"
#include "api/job_json.h"
#include "api/page.h"
#include "api/resources.h"
#include "api/type_json.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

constexpr std::size_t kTypeBody = 65536;
constexpr std::size_t kMostReason = 1000;  // bytes

// For a request with If-Match.
Problem other_version(const std::string& name) {
  return {412, "The type \"" + name + "\" is not the version of If-Match any more: read it again."};
}

Problem no_such_type(const std::string& name) { return {404, "There is no type \"" + name + "\"."}; }

// Answers when all databases that answer have the change, because the caller may create jobs in any of them next.
void answer_change(ApiContext& context, const CallPtr& call, Stores& control, const HttpResponse& response) {
  static_cast<void>(context.backend.reload_types(control));
  context.backend.mirror_types([call, response] { guarded(call, [&] { call->respond(response); }); });
}

// The version of a type as an entity tag, with its quotes.
std::string etag_of(const BizType& type) { return '"' + rfc3339(type.gmt_modified) + '"'; }

// Whether the value of If-Match, "*" or a list of entity tags, names this one. Weak tags match nothing (RFC
// 9110, 13.1.1).
bool is_matched(std::string_view if_match, std::string_view etag) {
  if (if_match == "*") return true;
  while (!if_match.empty()) {
    const std::size_t comma = std::min(if_match.find(','), if_match.size());
    std::string_view item = if_match.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (item == etag) return true;
    if_match.remove_prefix(std::min(comma + 1, if_match.size()));
  }
  return false;
}

HttpResponse type_response(const ApiContext& context, int status, const BizType& type, Reader reader) {
  return {status, "application/json", type_text(type, context.backend.now(), reader), {{"ETag", etag_of(type)}}};
}

Reader reader_of(const CallPtr& call) { return call->may_manage ? Reader::manager : Reader::anyone; }

void put(ApiContext& context, const CallPtr& call, const BizType& wanted, std::optional<bool> paused) {
  context.on_control(call, [&context, call, wanted, paused](Stores& stores) {
    const auto stored = stores.types.find(wanted.name);
    if (!stored) return call->refuse(context.problem_of(stored.error(), 0));
    const std::string& if_match = call->request.if_match;
    if (!if_match.empty() && (!*stored || !is_matched(if_match, etag_of(**stored))))
      return call->refuse(other_version(wanted.name));
    if (paused && *paused != (*stored && (*stored)->is_paused(context.backend.now())))
      return call->refuse({400,
                           "A type is paused by POST /v1/types/{name}/pause and resumed by /resume; a PUT leaves that "
                           "as it is.",
                           "paused"});
    BizType type = wanted;
    if (!restore_secrets(type, *stored ? &**stored : nullptr))
      return call->refuse({400, "whsec_*** stands for a stored secret, and none is stored.", "handler.secret"});
    if (const auto header = restore_headers(type, *stored ? &**stored : nullptr))
      return call->refuse({400, "*** stands for a stored value, and none is stored.", "handler.headers." + *header});
    if (const auto problem = restore_password(type, *stored ? &**stored : nullptr)) return call->refuse(*problem);
    if (const auto error = context.backend.check_handler(type))
      return call->refuse({400, error->message, error->field.empty() ? "handler" : error->field});
    const auto reply = stores.types.put(type, if_match.empty() ? std::nullopt : std::optional((*stored)->gmt_modified));
    if (!reply) return call->refuse(context.problem_of(reply.error(), 0));
    if (reply->is_other_version) return call->refuse(other_version(wanted.name));
    answer_change(context, call, stores,
                  type_response(context, reply->is_new ? 201 : 200, reply->type, Reader::manager));
  });
}

void put(ApiContext& context, const CallPtr& call) {
  const std::string& name = call->arguments[0];
  if (!is_type_name(name))
    return call->refuse({400, "A name has 1 to 128 characters of A-Z a-z 0-9 _ . : - and is not . or ..", "name"});
  JsonDocument document(call->request.body);
  JsonObject in = document.root();
  std::optional<bool> paused;
  const BizType type = read_type(in, name, paused);
  if (document.problem()) return call->refuse(*document.problem());
  put(context, call, type, paused);
}

void get(ApiContext& context, const CallPtr& call) {
  context.read_database(call, 0, [&context, call](Stores& stores) {
    // From the registry itself: this node's snapshot may be behind another node's change.
    const auto type = stores.types.find(call->arguments[0]);
    if (!type) return call->refuse(context.problem_of(type.error(), 0));
    *type ? call->respond(type_response(context, 200, **type, reader_of(call)))
          : call->refuse(no_such_type(call->arguments[0]));
  });
}

// By name, byte by byte: the cursor is the last name.
void list(ApiContext& context, const CallPtr& call) {
  PageRequest page;
  if (const auto problem = read_page_request(*call, "type", page)) return call->refuse(*problem);
  context.read_database(call, 0, [&context, call, page](Stores& stores) {
    auto types = stores.types.list();
    if (!types) return call->refuse(context.problem_of(types.error(), 0));
    std::ranges::sort(*types, {}, &BizType::name);
    std::string text;
    JsonWriter out(text);
    out.begin_object().key("items").begin_array();
    auto type = std::ranges::upper_bound(*types, page.after, {}, &BizType::name);
    for (int n = 0; n < page.limit && type != types->end(); ++n, ++type)
      write_type(out, *type, context.backend.now(), reader_of(call));
    end_page(out, "type", type == types->end() ? std::nullopt : std::optional(std::prev(type)->name));
    call->reply(200, std::move(text));
  });
}

using Registry = TypeStore::Registry;
using RemoveReply = TypeStore::RemoveReply;

// Why a database did not remove the type; nullopt: it did.
std::optional<Problem> remove_problem(const ApiContext& context, const std::string& name,
                                      const DatabaseAnswer<RemoveReply>& answer) {
  const auto& [database_id, reply] = answer;
  if (!reply) return context.problem_of(reply.error(), database_id);
  switch (*reply) {
    case RemoveReply::removed:
      return {};
    case RemoveReply::not_found:
      return no_such_type(name);
    case RemoveReply::has_live_jobs:
      return Problem{409, "The type has pending or running jobs; cancel them or let them finish first."};
    case RemoveReply::jobs_may_come:
      break;
  }
  return Problem{
      503,
      "A transaction is open that may create jobs of the type, or the type was changed meanwhile: ask again. "
      "docs/operations.md tells how to find the transaction.",
      "", 1};
}

// Has the copies of the type in other databases written again, because they may be marked as removed.
void renew(ApiContext& context, Stores& control, const std::string& name) {
  static_cast<void>(control.types.renew(name));
  static_cast<void>(context.backend.reload_types(control));
  context.backend.mirror_types([] {});
}

// `version`: at which the copies in other databases were marked as removed; nullopt: there are none.
void remove_at_control(ApiContext& context, const CallPtr& call, Stores& stores, std::optional<WallTime> version) {
  const std::string& name = call->arguments[0];
  const auto problem = remove_problem(context, name, {0, stores.types.remove(name, Registry::original, version)});
  if (!problem) {
    std::string text;
    JsonWriter(text).begin_object().field("result", "deleted").field("name", name).end_object();
    return answer_change(context, call, stores, {200, "application/json", std::move(text), {}});
  }
  if (version) renew(context, stores, name);
  call->refuse(*problem);
}

using RemoveAnswers = std::vector<DatabaseAnswer<RemoveReply>>;

void take_answers_of_copies(ApiContext& context, const CallPtr& call, const RemoveAnswers& answers, WallTime version) {
  std::optional<Problem> problem;
  bool is_marked = false;  // a copy, perhaps
  for (const auto& answer : answers) {
    if (!problem) problem = remove_problem(context, call->arguments[0], answer);
    is_marked = is_marked || !answer.result || *answer.result == RemoveReply::removed;
  }
  if (problem && !is_marked) return call->refuse(*problem);
  context.wait_on_control(call, [&context, call, problem, version](Stores& stores) {
    if (!problem) return remove_at_control(context, call, stores, version);
    renew(context, stores, call->arguments[0]);
    call->refuse(*problem);
  });
}

// Jobs of the type may live anywhere: the other databases remove their copies first, so that none is created there any
// more. If one of them refuses, or the control database does, all copies are written again.
void remove_copies(ApiContext& context, const CallPtr& call, const std::vector<DatabaseId>& others, WallTime version) {
  fan_out<RemoveReply>(
      context, call, others,
      [&context, call](DatabaseId, Stores& stores) -> Result<RemoveReply> {
        if (auto done = context.backend.make_types_known(stores); !done) return done.error();
        auto reply = stores.types.remove(call->arguments[0], Registry::copy, std::nullopt);
        // An earlier removal that did not finish has marked this copy.
        if (reply && *reply == RemoveReply::not_found) return RemoveReply::removed;
        return reply;
      },
      [&context, call, version](const RemoveAnswers& answers) {
        take_answers_of_copies(context, call, answers, version);
      },
      0, RequestQueue::lock_waits);
}

void remove(ApiContext& context, const CallPtr& call) {
  std::vector<DatabaseId> others = context.backend.database_ids();
  std::erase(others, 0);
  context.wait_on_control(call, [&context, call, others](Stores& stores) {
    const std::string& if_match = call->request.if_match;
    if (others.empty() && if_match.empty()) return remove_at_control(context, call, stores, {});
    // A job that replication brings to a database is not refused for a removed type.
    if (!others.empty() && !context.backend.moves().empty())
      return call->refuse({503, "A shard is moving: delete the type when the move has ended.", "", 1});
    const auto type = stores.types.find(call->arguments[0]);
    if (!type) return call->refuse(context.problem_of(type.error(), 0));
    if (!*type) return call->refuse(no_such_type(call->arguments[0]));
    if (!if_match.empty() && !is_matched(if_match, etag_of(**type)))
      return call->refuse(other_version(call->arguments[0]));
    if (others.empty()) return remove_at_control(context, call, stores, (*type)->gmt_modified);
    // This node may not have heard of the type yet; the copies are made from what it knows.
    if (auto done = context.backend.reload_types(stores); !done)
      return call->refuse(context.problem_of(done.error(), 0));
    remove_copies(context, call, others, (*type)->gmt_modified);
  });
}

void set_paused(ApiContext& context, const CallPtr& call, bool is_paused, std::optional<WallTime> until) {
  context.on_control(call, [&context, call, is_paused, until](Stores& stores) {
    const auto type = stores.types.set_paused(call->arguments[0], is_paused, until);
    if (!type) return call->refuse(context.problem_of(type.error(), 0));
    if (!*type) return call->refuse(no_such_type(call->arguments[0]));
    answer_change(context, call, stores, type_response(context, 200, **type, Reader::manager));
  });
}

void pause(ApiContext& context, const CallPtr& call) {
  std::optional<WallTime> until;
  if (!call->request.body.empty()) {
    JsonDocument document(call->request.body);
    JsonObject in = document.root();
    until = in.time("until");
    const WallTime now = context.backend.now();
    if (until && (*until <= now || *until > now + kMaxDelay)) in.fail("until", "Must lie ahead, at most 50 years.");
    call->audit.reason = in.string("reason", 0, kMostReason).value_or("");
    in.end();
    if (document.problem()) return call->refuse(*document.problem());
  }
  set_paused(context, call, true, until);
}

Route type_route(std::string method, std::string path, Access access, std::string operation_id, std::string summary,
                 std::string reply, std::function<void(const CallPtr&)> handler) {
  return {.method = std::move(method),
          .path = "/v1/types" + path,
          .access = access,
          .audit = access == Access::manage ? Audit::each : Audit::none,
          .operation_id = std::move(operation_id),
          .tag = "Types",
          .summary = std::move(summary),
          .body_limit = kTypeBody,
          .replies = {{200, std::move(reply)}},
          .errors = path.empty() ? std::vector<int>{429, 503} : std::vector<int>{404, 429, 503},
          .handler = std::move(handler)};
}

}  // namespace

std::vector<Route> type_routes(ApiContext& context) {
  Route put_route = type_route("PUT", "/{name}", Access::manage, "putType",
                               "Create or replace a type; with If-Match (an ETag) only that version", "Type",
                               [&context](const CallPtr& call) { put(context, call); });
  put_route.request = "NewType";
  put_route.takes_if_match = true;
  put_route.replies = {{201, "Type"}, {200, "Type"}};
  put_route.errors = {412, 429, 503};
  Route remove_route = type_route("DELETE", "/{name}", Access::manage, "deleteType",
                                  "Delete a type without live jobs; with If-Match (an ETag) only that version",
                                  "DeletedType", [&context](const CallPtr& call) { remove(context, call); });
  remove_route.takes_if_match = true;
  remove_route.errors.insert(remove_route.errors.end(), {409, 412});
  Route pause_route = type_route("POST", "/{name}/pause", Access::manage, "pauseType", "Stop firing; jobs stay pending",
                                 "Type", [&context](const CallPtr& call) { pause(context, call); });
  pause_route.request = "Pause";
  pause_route.is_body_optional = true;
  Route list_route = type_route("GET", "", Access::read, "listTypes", "The types, by name", "TypePage",
                                [&context](const CallPtr& call) { list(context, call); });
  list_route.query = page_parameters("Types");
  return {
      std::move(list_route),
      type_route("GET", "/{name}", Access::read, "getType", "One type", "Type",
                 [&context](const CallPtr& call) { get(context, call); }),
      std::move(put_route),
      std::move(remove_route),
      std::move(pause_route),
      type_route("POST", "/{name}/resume", Access::manage, "resumeType", "Fire again", "Type",
                 [&context](const CallPtr& call) { set_paused(context, call, false, {}); }),
  };
}

}  // namespace tocsin
