#include "multidb/outbox_waiter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "postgres/pg_outbox.h"

namespace tocsin {
namespace {

constexpr std::size_t kMostRequests = 20'000;
constexpr auto kLookAgain = std::chrono::milliseconds(20);
constexpr Duration kAnswerWithin = std::chrono::seconds(2);

class OwnSession final : public OutboxLookup {
 public:
  explicit OwnSession(SessionConfig config) : session_(std::move(config)) { session_.answer_within(kAnswerWithin); }
  Result<std::vector<bool>> are_waiting(std::span<const EntryQuery> queries) override {
    return lookup_.are_waiting(queries);
  }
  Status announce() override { return lookup_.announce(); }

 private:
  Session session_;
  PgOutboxLookup lookup_{session_};
};

}  // namespace

std::unique_ptr<OutboxLookup> outbox_lookup(SessionConfig session) {
  session.application = "tocsin outbox lookup";
  return std::make_unique<OwnSession>(std::move(session));
}

OutboxWaiter::OutboxWaiter(std::unique_ptr<OutboxLookup> lookup, const Clock& clock,
                           std::function<void(const Error&)> failed)
    : lookup_(std::move(lookup)), clock_(clock), failed_(std::move(failed)) {}

void OutboxWaiter::start() {
  worker_.start("outbox waiter", [this] { run(); });
}

void OutboxWaiter::stop() { worker_.stop(); }

bool OutboxWaiter::push(std::vector<EntryQuery> queries, Done done) {
  {
    MutexLock lock(mutex_);
    if (worker_.is_stopping() || new_.size() >= kMostRequests) return false;
    new_.push_back({std::move(queries), std::move(done), clock_.now() + kPatience});
  }
  worker_.wake();
  return true;
}

void OutboxWaiter::run() {
  while (held_.empty() ? worker_.wait() : worker_.wait_for(kLookAgain)) step();
  step(/*is_last=*/true);
}

void OutboxWaiter::step(bool is_last) {
  std::vector<Request> fresh;
  {
    MutexLock lock(mutex_);
    fresh.swap(new_);
  }
  std::vector<Request> found = look(std::move(fresh));
  if (!found.empty())
    if (auto announced = lookup_->announce(); !announced) failed_(announced.error());
  held_ = look(std::move(held_));
  std::ranges::move(found, std::back_inserter(held_));
  const MonoTime now = clock_.now();
  const auto expired =
      std::partition(held_.begin(), held_.end(), [&](const Request& each) { return each.until > now && !is_last; });
  for (auto each = expired; each != held_.end(); ++each) each->done(true);
  held_.erase(expired, held_.end());
}

std::vector<OutboxWaiter::Request> OutboxWaiter::look(std::vector<Request> requests) {
  if (requests.empty()) return {};
  std::vector<EntryQuery> queries;
  for (const Request& each : requests) std::ranges::copy(each.queries, std::back_inserter(queries));
  const auto waiting = lookup_->are_waiting(queries);
  if (!waiting) failed_(waiting.error());
  std::vector<Request> rest;
  std::size_t next = 0;
  for (Request& each : requests) {
    std::vector<EntryQuery> left;
    for (EntryQuery& query : each.queries)
      if (waiting && (*waiting)[next++]) left.push_back(std::move(query));
    if (left.empty()) {
      each.done(false);
      continue;
    }
    each.queries = std::move(left);
    rest.push_back(std::move(each));
  }
  return rest;
}

}  // namespace tocsin
