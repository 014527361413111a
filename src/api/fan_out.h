// gather() and fan_out(): ask several databases at once for the answer to one call, and collect the answers. Handlers
// of lists, reports and batches use them. Thread: any.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "api/context.h"
#include "api/json_writer.h"
#include "base/all_answers.h"

namespace tocsin {

template <class T>
struct DatabaseAnswer {
  DatabaseId database_id = 0;
  Result<T> result = Error{ErrorCode::unavailable, "was not asked", ""};
};

// The databases that have a part of a request.
template <class Part>
std::vector<DatabaseId> databases_of(const std::map<DatabaseId, Part>& parts) {
  std::vector<DatabaseId> database_ids;
  database_ids.reserve(parts.size());
  for (const auto& [database_id, part] : parts) database_ids.push_back(database_id);
  return database_ids;
}

// Which queue of a database takes the work: that of Backend::post, post_read, post_waiting or post_type_retry.
enum class RequestQueue { writes, slow_reads, lock_waits, type_retries };

// Sends a request to a database; `reply` is called once, on any thread. False: its queue is full, and `reply` is not
// called.
template <class T>
using Ask = std::function<bool(DatabaseId, std::function<void(Result<T>)> reply)>;

// Calls `ask` for each database, then `done` once with all answers, in the order of `database_ids`.
// - Thread: `done` runs on the thread of the last answer, which may be the caller's, before gather() returns.
// - Several databases: one that cannot be used, does not answer or has a full queue has Error unavailable.
// - A single database is asked even if it does not answer. If its queue is full, the call is refused with 429 and
//   `done` is not called.
// - An exception in `done` is answered 500.
// `total_databases`: how many the request asks in all, if it calls gather() several times; 0: only these. REQUIRES: at
// least one database.
template <class T>
void gather(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseId>& database_ids,
            const Ask<T>& ask, std::function<void(std::vector<DatabaseAnswer<T>>)> done,
            std::size_t total_databases = 0) {
  const bool is_of_several = std::max(total_databases, database_ids.size()) > 1;
  using Answer = DatabaseAnswer<T>;
  const auto answers = std::make_shared<AllAnswers<Answer>>(
      database_ids.size(),
      [call, done = std::move(done)](std::vector<Answer> all) { guarded(call, [&] { done(std::move(all)); }); });
  const auto answer = [answers, database_ids](std::size_t i, Result<T> result) {
    answers->take(i, {database_ids[i], std::move(result)});
  };
  for (std::size_t i = 0; i < database_ids.size(); ++i) {
    const DatabaseId database_id = database_ids[i];
    if (const auto why = context.backend.unavailable_reason(database_id)) {
      answer(i, *why);
      continue;
    }
    if (is_of_several && !context.backend.is_answering(database_id)) {
      answer(i, Error{ErrorCode::unavailable, "it does not answer", ""});
      continue;
    }
    if (ask(database_id, [answer, i](Result<T> result) { answer(i, std::move(result)); })) continue;
    if (!is_of_several) return ApiContext::too_busy(call);
    answer(i, too_many_requests());
  }
}

// Work for Backend::post: runs `work` and passes its result to `reply`; an exception becomes Error unavailable.
template <class T>
std::function<void(Stores&)> replying(std::function<Result<T>(Stores&)> work, std::function<void(Result<T>)> reply) {
  return [work = std::move(work), reply = std::move(reply)](Stores& stores) {
    Result<T> result = Error{ErrorCode::unavailable, "internal error", ""};
    try {
      result = work(stores);
    } catch (const std::exception&) {  // the Error above is the reply
    }
    reply(std::move(result));
  };
}

// As above, for the first step of a call: if the caller has gone when its turn comes (Responder::is_gone()), `reply`
// gets Error unavailable instead.
template <class T>
std::function<void(Stores&)> beginning(const CallPtr& call, std::function<Result<T>(Stores&)> work,
                                       std::function<void(Result<T>)> reply) {
  return replying<T>(
      [call, work = std::move(work)](Stores& stores) -> Result<T> {
        if (call->respond.is_gone()) return Error{ErrorCode::unavailable, "its caller has gone", ""};
        return work(stores);
      },
      std::move(reply));
}

// gather() for an `ask` that runs on a thread of each database, taken from its `queue`. If the caller has gone when its
// turn comes, the database is not asked and has Error unavailable; but work of RequestQueue::lock_waits always runs,
// because it may be a later step of a write.
template <class T>
void fan_out(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseId>& database_ids,
             std::function<Result<T>(DatabaseId, Stores&)> ask,
             std::function<void(std::vector<DatabaseAnswer<T>>)> done, std::size_t total_databases = 0,
             RequestQueue queue = RequestQueue::writes) {
  const Ask<T> post = [&context, call, ask = std::move(ask), queue](DatabaseId database_id,
                                                                    std::function<void(Result<T>)> reply) {
    const auto work = [ask, database_id](Stores& stores) { return ask(database_id, stores); };
    switch (queue) {
      case RequestQueue::slow_reads:
        return context.backend.post_read(database_id, beginning<T>(call, work, std::move(reply)));
      case RequestQueue::lock_waits:
        return context.backend.post_waiting(database_id, replying<T>(work, std::move(reply)));
      case RequestQueue::type_retries:
        return context.backend.post_type_retry(database_id, beginning<T>(call, work, std::move(reply)));
      case RequestQueue::writes:
        break;
    }
    return context.backend.post(database_id, beginning<T>(call, work, std::move(reply)));
  };
  gather<T>(context, call, database_ids, post, std::move(done), total_databases);
}

template <class T>
bool is_in_doubt(const DatabaseAnswer<T>& answer) {
  return !answer.result && answer.result.error().code == ErrorCode::in_doubt;
}

// If no database did anything, refuses the call with the error of the first and returns true. One of several that is in
// doubt may have done its part: the error of another would say that nothing happened, so the caller's answer has to
// tell them apart. REQUIRES: `answers` not empty.
template <class T>
bool refused_by_all(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseAnswer<T>>& answers) {
  if (std::ranges::any_of(answers, [](const DatabaseAnswer<T>& answer) { return answer.result.ok(); })) return false;
  if (answers.size() > 1 && std::ranges::any_of(answers, is_in_doubt<T>)) return false;
  call->refuse(context.problem_of(answers.front().result.error(), answers.front().database_id));
  return true;
}

// Writes the databases' names as an array; nothing if there are none.
inline void write_names(JsonWriter& out, const char* key, const Backend& backend,
                        const std::vector<DatabaseId>& database_ids) {
  if (database_ids.empty()) return;
  out.key(key).begin_array();
  for (const DatabaseId database_id : database_ids) out.value(backend.database_name(database_id));
  out.end_array();
}

// Writes "in_doubt", the names of the databases with Error in_doubt (the write may have happened), and "missing", those
// with another error. An empty list is not written.
template <class T>
void write_missing(JsonWriter& out, const Backend& backend, const std::vector<DatabaseAnswer<T>>& answers) {
  std::vector<DatabaseId> in_doubt, missing;
  for (const DatabaseAnswer<T>& answer : answers)
    if (!answer.result) (is_in_doubt(answer) ? in_doubt : missing).push_back(answer.database_id);
  write_names(out, "missing", backend, missing);
  write_names(out, "in_doubt", backend, in_doubt);
}

}  // namespace tocsin
