// Fan-out: asks several databases at once, each on a thread of that database, and collects the answers.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/context.h"
#include "api/json_writer.h"
#include "base/mutex.h"

namespace tocsin {

template <class T>
struct DatabaseAnswer {
  DatabaseId database_id = 0;
  Result<T> result = Error{ErrorCode::unavailable, "was not asked", ""};
};

// Which of a database's threads do the work: Backend::post or Backend::post_read.
enum class Pool { writes, slow_reads };

// Sends a request to a database; `reply` is called later, on any thread. False: its queue is full, and `reply` is not
// called.
template <class T>
using Ask = std::function<bool(DatabaseId, std::function<void(Result<T>)> reply)>;

// Calls `ask` once per database, and `done` once, on the thread of the last answer, with the answers in the order of
// `database_ids`. A database that cannot be used, and of several one that is down or has a full queue, is not asked:
// its answer is Error unavailable. If only one is asked and its queue is full, the call is answered 429 and `done` is
// not called. `of`: how many databases the caller asks in all, if it calls gather() for one after the other. REQUIRES:
// at least one database.
template <class T>
void gather(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseId>& database_ids,
            const Ask<T>& ask, std::function<void(std::vector<DatabaseAnswer<T>>)> done, std::size_t of = 0) {
  const bool is_of_several = std::max(of, database_ids.size()) > 1;
  struct State {
    explicit State(std::size_t n) : left(n) {}
    Mutex mutex;
    std::vector<DatabaseAnswer<T>> answers;  // each written under the lock; read when none is left to come
    std::size_t left TOCSIN_GUARDED_BY(mutex);
    std::function<void(std::vector<DatabaseAnswer<T>>)> done;
  };
  const auto state = std::make_shared<State>(database_ids.size());
  for (const DatabaseId database_id : database_ids) state->answers.push_back({.database_id = database_id});
  state->done = std::move(done);
  const auto answer = [state, call](std::size_t i, Result<T> result) {
    {
      MutexLock lock(state->mutex);
      state->answers[i].result = std::move(result);
      if (--state->left > 0) return;
    }
    guarded(call, [&] { state->done(std::move(state->answers)); });
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

// Runs `work` and passes its result to `reply`; an exception becomes an Error.
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

// As gather; `ask` runs on a thread of each database.
template <class T>
void scatter(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseId>& database_ids,
             std::function<Result<T>(DatabaseId, Stores&)> ask,
             std::function<void(std::vector<DatabaseAnswer<T>>)> done, std::size_t of = 0, Pool pool = Pool::writes) {
  const Ask<T> post = [&context, ask = std::move(ask), pool](DatabaseId database_id,
                                                             std::function<void(Result<T>)> reply) {
    auto work = replying<T>([ask, database_id](Stores& stores) { return ask(database_id, stores); }, std::move(reply));
    return pool == Pool::slow_reads ? context.backend.post_read(database_id, std::move(work))
                                    : context.backend.post(database_id, std::move(work));
  };
  gather<T>(context, call, database_ids, post, std::move(done), of);
}

// If no database answered: refuses the call with the first error.
template <class T>
bool refused_by_all(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseAnswer<T>>& answers) {
  if (std::ranges::any_of(answers, [](const DatabaseAnswer<T>& answer) { return answer.result.ok(); })) return false;
  call->refuse(context.problem_of(answers.front().result.error(), answers.front().database_id));
  return true;
}

// Writes "missing", the names of databases that did not answer, and "in_doubt", those whose answer was lost; nothing
// when all answered.
template <class T>
void write_missing(JsonWriter& out, const Backend& backend, const std::vector<DatabaseAnswer<T>>& answers) {
  for (const bool is_in_doubt : {false, true}) {
    const auto is_named = [&](const DatabaseAnswer<T>& answer) {
      return !answer.result && (answer.result.error().code == ErrorCode::in_doubt) == is_in_doubt;
    };
    if (std::ranges::none_of(answers, is_named)) continue;
    out.key(is_in_doubt ? "in_doubt" : "missing").begin_array();
    for (const auto& answer : answers)
      if (is_named(answer)) out.value(backend.database_name(answer.database_id));
    out.end_array();
  }
}

}  // namespace tocsin
