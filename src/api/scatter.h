// Asks several databases at once, each on a thread of its own, and puts the answers together.
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
  DatabaseId place = 0;
  Result<T> result = Error{ErrorCode::unavailable, "was not asked", ""};
};

enum class Pool { promises, reads };  // see Backend::post and post_read

// Begins to ask a database; the reply comes later, on any thread. False: its queue is full, and no reply comes.
template <class T>
using Ask = std::function<bool(DatabaseId, std::function<void(Result<T>)> reply)>;

// `ask` is called once per place; `done` once, on the thread of the last to answer, with the answers in the order of
// `places`. Of several databases, one known to be down is not waited for; a full queue of a sole database is answered
// with 429. `of`: how many are asked in all, maybe one after the other. REQUIRES: at least one place.
template <class T>
void gather(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseId>& places, const Ask<T>& ask,
            std::function<void(std::vector<DatabaseAnswer<T>>)> done, std::size_t of = 0) {
  const bool is_of_several = std::max(of, places.size()) > 1;
  struct State {
    explicit State(std::size_t n) : left(n) {}
    Mutex mutex;
    std::vector<DatabaseAnswer<T>> answers;  // each written under the lock; read when none is left to come
    std::size_t left TOCSIN_GUARDED_BY(mutex);
    std::function<void(std::vector<DatabaseAnswer<T>>)> done;
  };
  const auto state = std::make_shared<State>(places.size());
  for (const DatabaseId place : places) state->answers.push_back({.place = place});
  state->done = std::move(done);
  const auto answer = [state, call](std::size_t i, Result<T> result) {
    {
      MutexLock lock(state->mutex);
      state->answers[i].result = std::move(result);
      if (--state->left > 0) return;
    }
    guarded(call, [&] { state->done(std::move(state->answers)); });
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    const DatabaseId place = places[i];
    if (const auto why = context.backend.unavailable_reason(place)) {
      answer(i, *why);
      continue;
    }
    if (is_of_several && !context.backend.is_answering(place)) {
      answer(i, Error{ErrorCode::unavailable, "it does not answer", ""});
      continue;
    }
    if (ask(place, [answer, i](Result<T> result) { answer(i, std::move(result)); })) continue;
    if (!is_of_several) return ApiContext::too_busy(call);
    answer(i, Error{ErrorCode::unavailable, "too much is waiting for it", ""});
  }
}

// `work`, whose reply the caller waits for whatever happens.
template <class T>
std::function<void(Stores&)> replying(std::function<Result<T>(Stores&)> work, std::function<void(Result<T>)> reply) {
  return [work = std::move(work), reply = std::move(reply)](Stores& stores) {
    Result<T> result = Error{ErrorCode::unavailable, "something unexpected happened", ""};
    try {
      result = work(stores);
    } catch (const std::exception&) {  // told above
    }
    reply(std::move(result));
  };
}

// As gather; `ask` runs on a thread of each database.
template <class T>
void scatter(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseId>& places,
             std::function<Result<T>(DatabaseId, Stores&)> ask,
             std::function<void(std::vector<DatabaseAnswer<T>>)> done, std::size_t of = 0, Pool pool = Pool::promises) {
  const Ask<T> post = [&context, ask = std::move(ask), pool](DatabaseId place, std::function<void(Result<T>)> reply) {
    auto work = replying<T>([ask, place](Stores& stores) { return ask(place, stores); }, std::move(reply));
    return pool == Pool::reads ? context.backend.post_read(place, std::move(work))
                               : context.backend.post(place, std::move(work));
  };
  gather<T>(context, call, places, post, std::move(done), of);
}

// If no database answered: refuses the call with the first error.
template <class T>
bool refused_by_all(const ApiContext& context, const CallPtr& call, const std::vector<DatabaseAnswer<T>>& answers) {
  if (std::ranges::any_of(answers, [](const DatabaseAnswer<T>& answer) { return answer.result.ok(); })) return false;
  call->refuse(context.problem_of(answers.front().result.error(), answers.front().place));
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
      if (is_named(answer)) out.value(backend.database_name(answer.place));
    out.end_array();
  }
}

}  // namespace tocsin
