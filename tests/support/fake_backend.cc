#include "support/fake_backend.h"

#include <array>

#include "base/assert.h"

namespace tocsin {

FakeBackend::FakeBackend(int shards) : database([this] { return time; }, shards) {}

FaultPoint::Fate FakeBackend::before(const FakeCall&) {
  if (fails == ErrorCode::unavailable) return Fate::unavailable;
  return fails == ErrorCode::conflict ? Fate::conflict : Fate::happens;
}

BizType FakeBackend::add_type(const std::string& name, const std::string& handler_json) {
  BizType type;
  type.name = name;
  type.handler_json = handler_json;
  type.handler_kind = handler_json.find("webhook") != std::string::npos ? "webhook"
                      : handler_json.find("pull") != std::string::npos  ? "pull"
                                                                        : "noop";
  const BizType stored = database.put_type(type, time).type;
  catalog_ = std::make_shared<TypeCatalog>(database.list_types());
  return stored;
}

ClaimToken FakeBackend::claim(JobId job) {
  const std::array ids{job};
  const std::array ttr{Duration(std::chrono::seconds(30))};
  const auto claimed = store_.claim(ids, ttr, {.seed = 7, .node = node_name()});
  TOCSIN_ASSERT(claimed && claimed->size() == 1);
  return claimed->front().token;
}

void FakeBackend::finish(JobId job, FinishRequest::Kind kind, const std::string& message) {
  const std::array requests{FinishRequest{job, claim(job), kind, std::chrono::seconds(10), message}};
  const auto replies = store_.finish(requests, node_name());
  TOCSIN_ASSERT(replies && replies->front() == FinishReply::applied);
}

bool FakeBackend::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  if (is_full) return false;
  const std::array jobs{std::move(job)};
  auto replies = desk_.create(jobs, CreateMode::each_by_itself);
  if (replies)
    done(std::move(replies->front()));
  else
    done(replies.error());
  return true;
}

bool FakeBackend::cancel(JobId job, std::function<void(Result<CancelReply>)> done) {
  if (is_full) return false;
  const std::array jobs{job};
  auto replies = desk_.cancel(jobs);
  if (replies)
    done(std::move(replies->front()));
  else
    done(replies.error());
  return true;
}

bool FakeBackend::lease(LeaseCall call) {
  if (is_full) return false;
  leases.push_back(call);
  std::vector<ClaimedJob> jobs;
  for (int shard = 0; shard < shards() && jobs.size() < call.max; ++shard) {
    const Lane lane{static_cast<Shard>(shard), call.type_id};
    auto won = store_.claim_due(lane, WallTime::min(), static_cast<int>(call.max - jobs.size()), call.ttr,
                                {.seed = static_cast<std::int64_t>(leases.size()), .node = node_name()});
    if (won) jobs.insert(jobs.end(), won->begin(), won->end());
  }
  call.done(std::move(jobs));
  return true;
}

bool FakeBackend::post(std::function<void(Stores&)> work) {
  if (is_full) return false;
  Stores stores{desk_, reports_, type_store_};
  work(stores);
  return true;
}

void FakeBackend::reload_types(Stores&) {
  ++reloads;
  catalog_ = std::make_shared<TypeCatalog>(database.list_types());
}

}  // namespace tocsin
