#include "support/fake_functions.h"

#include <stdexcept>
#include <vector>

namespace tocsin {
namespace {

struct Transaction {
  FakeDatabase& database;
  FakeBusiness& business;
  std::string function;
  std::vector<FunctionCall> calls;
  FunctionStore::Judge judge;
  std::string node;

  Result<FunctionReply> operator()(WallTime now) const;
};

Result<FunctionReply> Transaction::operator()(WallTime now) const {
  const auto found = business.functions.find(function);
  FunctionReply reply;
  if (found == business.functions.end()) {
    reply.failure = "function shop." + function + " does not exist";
    return reply;
  }
  // The end of the transaction would be refused, with all effects: as if nothing had been called.
  for (const FunctionCall& call : calls)
    if (const auto why = database.refusal(call.job_id)) return *why;
  reply.written.resize(calls.size());
  const FakeBusiness::Effects before = business.effects;
  std::vector<FinishRequest> requests;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const auto row = database.live().find(calls[n].job_id);
    if (row == database.live().end() || row->second.job.status != JobStatus::running) continue;
    if (row->second.token != calls[n].token && !business.bugs.ignores_token) continue;
    if (database.is_locked(calls[n].job_id)) continue;
    std::string failure;
    bool is_too_slow = false;
    try {
      const auto request = judge(n, found->second(row->second.job, business.effects));
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
    if (!business.bugs.keeps_effects) business.effects = before;
    return FunctionReply{{}, failure, is_too_slow};
  }
  database.finish(requests, node, now);
  return reply;
}

}  // namespace

Status FakeFunctionStore::check(const FunctionName& function) {
  if (function.schema == "shop" && business_.functions.contains(function.name)) return Unit{};
  return Error{ErrorCode::invalid, "is no function of this database", "handler.function"};
}

Result<FunctionReply> FakeFunctionStore::run(const FunctionName& function, std::span<const FunctionCall> calls,
                                             Duration, const Judge& judge, const std::string& node) {
  auto reply =
      call<FunctionReply>("call_function", true,
                          Transaction{database_, business_, function.name, {calls.begin(), calls.end()}, judge, node});
  if (reply && reply->failure.empty() && lose_answers > 0) {
    --lose_answers;
    return Error{ErrorCode::in_doubt, "the answer was lost", ""};
  }
  return reply;
}

}  // namespace tocsin
