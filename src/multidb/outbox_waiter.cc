#include "multidb/outbox_waiter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "postgres/pg_outbox.h"

namespace tocsin {
namespace {

constexpr std::size_t kLookupBatch = 1'000;  // queries in a statement
constexpr auto kRound = std::chrono::milliseconds(20);
constexpr Duration kAnswerWithin = std::chrono::seconds(2);

class SessionOutboxLookup final : public OutboxLookup {
 public:
  explicit SessionOutboxLookup(SessionConfig config) : session_(std::move(config)) {
    session_.answer_within(kAnswerWithin);
  }
  Result<std::vector<bool>> are_waiting(std::span<const EntryQuery> queries) override {
    return lookup_.are_waiting(queries);
  }
  Status announce() override { return lookup_.announce(); }
  Result<ShardsHere> shards_here() override { return lookup_.shards_here(); }

 private:
  Session session_;
  PgOutboxLookup lookup_{session_};
};

}  // namespace

std::unique_ptr<OutboxLookup> outbox_lookup(SessionConfig session) {
  session.application = "tocsin outbox lookup";
  return std::make_unique<SessionOutboxLookup>(std::move(session));
}

OutboxWaiter::OutboxWaiter(std::unique_ptr<OutboxLookup> lookup, const Clock& clock, Hooks hooks)
    : lookup_(std::move(lookup)), clock_(clock), hooks_(std::move(hooks)) {}

void OutboxWaiter::start() {
  worker_.start("outbox waiter", [this] { run(); });
}

void OutboxWaiter::stop() { worker_.stop(); }

bool OutboxWaiter::push(std::vector<EntryQuery> queries, Done done) {
  const std::size_t size = queries.size();
  {
    MutexLock lock(mutex_);
    if (worker_.is_stopping() || waiting_ + size > kMostQueries) return false;
    waiting_ += size;
    new_.push_back({std::move(queries), size, std::move(done), clock_.now() + kPatience});
  }
  worker_.wake();
  return true;
}

bool OutboxWaiter::ask_shards(ShardsDone done) {
  {
    MutexLock lock(mutex_);
    if (worker_.is_stopping() || shard_questions_.size() >= kMostQueries) return false;
    shard_questions_.push_back(std::move(done));
  }
  worker_.wake();
  return true;
}

void OutboxWaiter::run() {
  while (held_.empty() ? worker_.wait() : worker_.wait_for(kRound)) step();
  step(/*is_last=*/true);
}

void OutboxWaiter::step(bool is_last) {
  const MonoTime now = clock_.now();
  const bool is_round = now >= next_round_;
  if (is_round) {
    held_ = settle(std::move(held_));
    next_round_ = now + kRound;
  }
  std::vector<Request> fresh;
  std::vector<ShardsDone> questions;
  {
    MutexLock lock(mutex_);
    fresh.swap(new_);
    questions.swap(shard_questions_);
  }
  if (!questions.empty()) {
    const auto shards = look_for_shards();
    for (const ShardsDone& done : questions) done(shards);
  }
  fresh = settle(std::move(fresh));
  has_unannounced_ = has_unannounced_ || !fresh.empty();
  std::ranges::move(fresh, std::back_inserter(held_));
  if (held_.empty()) has_unannounced_ = false;
  if (has_unannounced_ && is_round) {
    const auto announced = lookup_->announce();
    has_unannounced_ = !announced;
    if (!announced) hooks_.failed(announced.error());
  }
  const auto expired = std::partition(held_.begin(), held_.end(),
                                      [&](const Request& each) { return each.until > clock_.now() && !is_last; });
  for (auto each = expired; each != held_.end(); ++each) reply(*each, Answer::waits);
  held_.erase(expired, held_.end());
}

std::vector<OutboxWaiter::Request> OutboxWaiter::settle(std::vector<Request> requests) {
  std::vector<Request> rest;
  if (requests.empty()) return rest;
  Answer for_all = hooks_.is_answering() ? Answer::gone : Answer::not_asked;
  for (std::size_t begin = 0, end = 0; begin < requests.size(); begin = end) {
    std::size_t size = 0;
    while (end < requests.size() && (end == begin || size + requests[end].queries.size() <= kLookupBatch))
      size += requests[end++].queries.size();
    const std::span<Request> part(requests.begin() + static_cast<std::ptrdiff_t>(begin), end - begin);
    if (for_all == Answer::gone && !settle_together(part, rest)) for_all = Answer::unknown;
    if (for_all != Answer::gone)
      for (Request& each : part) reply(each, for_all);
  }
  return rest;
}

bool OutboxWaiter::settle_together(std::span<Request> requests, std::vector<Request>& rest) {
  std::vector<EntryQuery> queries;
  for (const Request& each : requests) std::ranges::copy(each.queries, std::back_inserter(queries));
  const auto waiting = look_up(queries);
  if (!waiting) return false;
  std::size_t next = 0;
  for (Request& each : requests) {
    std::vector<EntryQuery> left;
    for (EntryQuery& query : each.queries)
      if ((*waiting)[next++]) left.push_back(std::move(query));
    each.queries = std::move(left);
    if (each.queries.empty())
      reply(each, Answer::gone);
    else
      rest.push_back(std::move(each));
  }
  return true;
}

// A request may have more queries than a statement.
Result<std::vector<bool>> OutboxWaiter::look_up(const std::vector<EntryQuery>& queries) {
  std::vector<bool> all;
  for (std::size_t i = 0; i < queries.size(); i += kLookupBatch) {
    const auto part = lookup_->are_waiting(std::span(queries).subspan(i, std::min(kLookupBatch, queries.size() - i)));
    if (!part) {
      hooks_.failed(part.error());
      return part.error();
    }
    all.insert(all.end(), part->begin(), part->end());
  }
  return all;
}

Result<ShardsHere> OutboxWaiter::look_for_shards() {
  if (!hooks_.is_answering()) return Error{ErrorCode::unavailable, "it does not answer", ""};
  auto shards = lookup_->shards_here();
  if (!shards) hooks_.failed(shards.error());
  return shards;
}

void OutboxWaiter::reply(Request& request, Answer answer) {
  {
    MutexLock lock(mutex_);
    waiting_ -= request.size;
  }
  request.done(answer);
}

}  // namespace tocsin
