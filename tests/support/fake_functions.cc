#include "support/fake_functions.h"

#include <stdexcept>
#include <vector>

namespace tocsin {

Status FakeFunctionStore::check(const FunctionName& function) {
  if (function.schema == "shop" && business_.functions.contains(function.name)) return Unit{};
  return Error{ErrorCode::invalid, "is no function of this database", "handler.function"};
}

Result<FunctionReply> FakeFunctionStore::run(const FunctionName& function, std::span<const FunctionCall> calls,
                                             Duration, const Judge& judge, const std::string& node) {
  const auto found = business_.functions.find(function.name);
  FunctionReply reply;
  if (found == business_.functions.end()) {
    reply.failure = "function shop." + function.name + " does not exist";
    return reply;
  }
  reply.written.resize(calls.size());
  const FakeBusiness::Effects before = business_.effects;
  std::vector<FinishRequest> requests;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const auto row = database_.live().find(calls[n].job_id);
    if (row == database_.live().end() || row->second.job.status != JobStatus::running) continue;
    if (row->second.token != calls[n].token && !business_.bugs.ignores_token) continue;
    if (database_.is_locked(calls[n].job_id)) continue;
    std::string failure;
    bool is_too_slow = false;
    try {
      const auto request = judge(n, found->second(row->second.job, business_.effects));
      if (request) {
        requests.push_back(*request);
        reply.written[n] = *request;
      } else {
        failure = request.error().message;
      }
    } catch (const TookTooLong& slow) {
      failure = slow.what();
      is_too_slow = true;
    } catch (const std::runtime_error& raised) {
      failure = raised.what();
    }
    if (failure.empty()) continue;
    if (!business_.bugs.keeps_effects) business_.effects = before;
    return FunctionReply{{}, failure, is_too_slow};
  }
  for (const FinishRequest& request : requests) {
    const auto why = database_.refusal(request.job_id);
    if (!why) continue;
    business_.effects = before;
    return *why;
  }
  database_.finish(requests, node, database_.now());
  if (lose_answers > 0) {
    --lose_answers;
    return Error{ErrorCode::in_doubt, "the answer was lost", ""};
  }
  return reply;
}

}  // namespace tocsin
