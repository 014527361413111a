#include "simulation/sim_functions.h"

#include <algorithm>
#include <stdexcept>

#include "delivery/sql_outcome.h"
#include "simulation/sim_node.h"

namespace tocsin {
namespace {

constexpr Duration kDatabasePause = std::chrono::seconds(1);

}  // namespace

FakeBusiness any_business(const FakeFunctionBugs& bugs) {
  FakeBusiness business;
  business.functions[kReturns.name] = [](const Job&, FakeBusiness::Effects&) { return std::nullopt; };
  business.functions[kRaises.name] = [](const Job&, FakeBusiness::Effects&) -> std::optional<std::string> {
    throw std::runtime_error("it raised an error");
  };
  business.bugs = bugs;
  return business;
}

Outcome outcome_of(const Result<FunctionReply>& reply) {
  if (!reply) {
    const bool is_away = reply.error().code == ErrorCode::unavailable;
    return is_away ? Outcome::not_started(kDatabasePause) : Outcome::retry(reply.error().message);
  }
  if (!reply->failure.empty()) return Outcome::retry(reply->failure);
  return outcome_of_written(reply->written.front());
}

FinishRequest request_for(const ClaimedJob& claimed, const Outcome& outcome) {
  return end_of_call({claimed.job.job_id, claimed.token}, outcome, claimed.job.attempts >= claimed.job.max_attempts,
                     outcome.message);
}

SimFunctions::~SimFunctions() {
  for (const auto& [id, call] : calls_) world_.scheduler.kill(call.fiber);
}

std::size_t SimFunctions::running(TypeId type) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(calls_, [&](const auto& call) { return call.second.type == type; }));
}

void SimFunctions::start(const ClaimedJob& claimed, const Outcome& outcome, Duration wait, Handler::Finish finish) {
  world_.checker.on_queued(claimed);
  const std::uint64_t id = ++last_call_;
  calls_[id] = {claimed.job.type_id, 0};
  const auto fiber = world_.scheduler.spawn([this, id, claimed, outcome, wait, finish = std::move(finish)] {
    world_.scheduler.sleep(wait);
    while (node_.frozen_until() > world_.scheduler.now()) world_.scheduler.wait_until(node_.frozen_until());
    const Outcome ended = call(claimed, outcome);
    calls_.erase(id);
    finish(ended);
  });
  if (const auto call = calls_.find(id); call != calls_.end()) call->second.fiber = fiber;
}

// What the transaction does may happen after this node is gone, so it refers to the world only.
Outcome SimFunctions::call(const ClaimedJob& claimed, const Outcome& outcome) {
  Outcome ended = Outcome::not_started(Duration(0));
  Checker& checker = world_.checker;
  const bool may_start = outcome.kind != Outcome::Kind::not_started && world_.scheduler.now() < claimed.lease_deadline;
  if (may_start) {
    const bool raises = outcome.kind == Outcome::Kind::retry && !outcome.retry_after;
    const FunctionCall of_job{claimed.job.job_id, claimed.token};
    FakeFunctionStore store(database_.data, world_.business, &world_.scheduler, &wire_, 30);
    const auto judge = [&checker, claimed, outcome](std::size_t, const auto&) -> Result<FinishRequest> {
      checker.on_call(claimed, outcome);
      return request_for(claimed, outcome);
    };
    ended = outcome_of(store.run(raises ? kRaises : kReturns, {&of_job, 1}, Duration(0), judge, node_.name()));
  }
  if (!ended.is_written) checker.on_answer(claimed, ended);
  return ended;
}

}  // namespace tocsin
