#include "simulation/consumers.h"

#include <algorithm>

namespace tocsin {

using namespace std::chrono_literals;

// One long poll. The node may answer when its consumer has hung up, or never.
struct Consumers::Request {
  std::string node;
  std::vector<ClaimedJob> jobs;
  Scheduler::FiberId asker = 0;
  std::uint64_t poll = 0;  // its number
  bool is_awaited = false;
  bool is_answered = false;
  bool is_gone = false;
};

void Consumers::begin(int n) {
  fibers_.resize(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    fibers_[i] = world_.scheduler.spawn([this, i] {
      world_.scheduler.sleep(up_to(1s));
      live(i);
    });
  }
}

SimNode* Consumers::any_node() { return nodes_[world_.random.below(nodes_.size())]; }

void Consumers::live(std::size_t number) {
  const int session = 200 + static_cast<int>(number);
  SimNode* node = any_node();
  while (true) {
    if (!node->is_up() || chance(habits_.wanders)) node = any_node();
    const auto request = ask(fibers_[number], *node, *types_[world_.random.below(types_.size())]);
    world_.trace.line(world_.scheduler.now(),
                      "consumer " + std::to_string(number) +
                          (request ? " gets " + std::to_string(request->jobs.size()) + " of " : " is refused by ") +
                          node->name());
    if (!request) {
      world_.scheduler.sleep(100ms);
      continue;
    }
    for (const ClaimedJob& claimed : request->jobs) work(session, *node, claimed);
    world_.scheduler.sleep(up_to(10ms));
  }
}

// Null: the node accepts no consumers.
std::shared_ptr<Consumers::Request> Consumers::ask(Scheduler::FiberId asker, SimNode& node, const BizType& type) {
  const auto request = std::make_shared<Request>();
  request->node = node.name();
  request->asker = asker;
  const MonoTime now = world_.scheduler.now();
  const Duration wait = up_to(habits_.longest_poll);
  const Duration ttr = chance(0.7) ? type.ttr : type.ttr / 2 + up_to(type.ttr);
  const std::size_t max = 1 + world_.random.below(4);
  const auto answer = [this, request](std::vector<ClaimedJob> jobs) {
    request->is_answered = true;
    world_.checker.on_poll_over(request->poll);
    if (request->is_gone) return;  // written to a closed connection
    for (const ClaimedJob& claimed : jobs) world_.checker.on_lease(request->node, claimed);
    request->jobs = std::move(jobs);
    if (request->is_awaited) world_.scheduler.wake(request->asker);
  };
  request->poll = world_.checker.on_poll(node.name(), type.type_id);
  if (!node.lease({type.type_id, max, ttr, now, now + wait, [request] { return request->is_gone; }, answer})) {
    world_.checker.on_poll_over(request->poll);
    return {};
  }
  const MonoTime patience = now + (chance(habits_.hangs_up) ? up_to(wait) : wait + 3s);
  request->is_awaited = true;
  if (!request->is_answered) world_.scheduler.wait_until(patience);
  request->is_awaited = false;
  request->is_gone = !request->is_answered;
  if (request->is_gone) world_.checker.on_poll_over(request->poll);
  return request;
}

void Consumers::work(int session, SimNode& node, const ClaimedJob& claimed) {
  if (chance(habits_.forgets)) return world_.checker.on_lease_left(claimed);
  const Duration lease = std::max<Duration>(1ms, claimed.lease_deadline - world_.scheduler.now());
  const Duration most = std::min<Duration>(lease * 8 / 10, habits_.longest_work);
  const Duration time = chance(habits_.is_late) ? lease + up_to(lease) : up_to(most);
  world_.scheduler.sleep(time / 2);
  if (chance(habits_.extends)) extend(session, node, claimed);
  world_.scheduler.sleep(time / 2);
  const Outcome outcome = !chance(habits_.fails) ? Outcome::done()
                          : chance(0.5)          ? Outcome::retry("nack")
                                                 : Outcome::retry("nack", up_to(2s));
  world_.checker.on_answer(claimed, outcome);
  settle(session, node, claimed, outcome);
}

template <class Work>
auto Consumers::call(int session, JobId job, Work work) {
  SimDatabase& database = world_.databases.of(job);
  const auto generation = database.data.generation();
  FakeClientStore client_store(database.data, &world_.scheduler, &database.faults, session);
  auto reply = work(client_store);
  if (generation != database.data.generation()) reply = Error{ErrorCode::in_doubt, "of another server", ""};
  return reply;
}

void Consumers::extend(int session, SimNode& node, const ClaimedJob& claimed) {
  const Lease lease{claimed.job.job_id, claimed.token};
  const auto type = std::ranges::find(types_, claimed.job.type_id, &BizType::type_id);
  const Duration ttr = (*type)->ttr;
  const auto replies = call(session, lease.job_id, [&](FakeClientStore& client_store) {
    return client_store.extend(std::vector<Extension>{{lease, ttr}});
  });
  if (replies && replies->front().kind == LeaseReply::applied && (*type)->max_running)
    node.extend_lease(replies->front().type_id, lease, ttr);
}

// Asks again until it knows, or until another consumer may have the job.
void Consumers::settle(int session, SimNode& node, const ClaimedJob& claimed, const Outcome& outcome) {
  const Job& job = claimed.job;
  FinishRequest request{job.job_id, claimed.token, FinishRequest::Kind::done, Duration(0), outcome.message};
  if (outcome.kind == Outcome::Kind::retry) {
    request.kind = job.attempts < job.max_attempts ? FinishRequest::Kind::retry : FinishRequest::Kind::dead;
    request.delay = outcome.retry_after.value_or(up_to(1s));
  }
  for (int i = 0; i < 5; ++i) {
    const auto replies = call(session, job.job_id, [&](FakeClientStore& client_store) {
      return client_store.finish_leased({&request, 1}, node.name());
    });
    if (!replies || replies->front().kind == LeaseReply::busy || replies->front().kind == LeaseReply::refused) {
      world_.scheduler.sleep(up_to(500ms));
      continue;
    }
    world_.checker.on_lease_reply(claimed, replies->front().kind);
    if (replies->front().kind == LeaseReply::stale) break;
    return node.end_lease({job.job_id, claimed.token});
  }
  world_.checker.on_lease_left(claimed);
}

}  // namespace tocsin
