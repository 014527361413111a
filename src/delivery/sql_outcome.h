// How the outcome of an SQL function becomes the end of its attempt, which the function's transaction writes, and back.
// Thread: any.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "ports/function_store.h"

namespace tocsin {

// The end of the attempt. `is_last`: it has no retry. `message`: of the outcome, as it may be stored.
inline FinishRequest end_of_call(const FunctionCall& call, const Outcome& outcome, bool is_last, std::string message) {
  FinishRequest request{call.job_id, call.token, FinishRequest::Kind::done, Duration(0), std::move(message)};
  if (outcome.kind == Outcome::Kind::dead) {
    request.kind = FinishRequest::Kind::dead;
  } else if (outcome.kind == Outcome::Kind::retry) {
    request.kind = is_last ? FinishRequest::Kind::dead : FinishRequest::Kind::retry;
    request.delay = outcome.retry_after.value_or(Duration(0));
  }
  return request;
}

// What the engine is told of an end that is written. The state of a job whose function was not called (nullopt) is
// unknown here; the finisher learns it when it releases the job.
inline Outcome outcome_of_written(const std::optional<FinishRequest>& request) {
  if (!request) return Outcome::not_started(Duration(0));
  Outcome outcome;
  outcome.kind = request->kind == FinishRequest::Kind::done   ? Outcome::Kind::done
                 : request->kind == FinishRequest::Kind::dead ? Outcome::Kind::dead
                                                              : Outcome::Kind::retry;
  outcome.message = request->message;
  outcome.retry_after = request->delay;
  outcome.is_written = true;
  return outcome;
}

}  // namespace tocsin
