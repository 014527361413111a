#include "support/fake_backend.h"

#include <array>
#include <utility>

#include "base/assert.h"

namespace tocsin {

FakeBackend::FakeBackend(int shards, int databases) : database([this] { return time; }, shards) {
  for (int i = 1; i < databases; ++i)
    others_.push_back(std::make_unique<FakeDatabase>([this] { return time; }, shards));
}

std::optional<ErrorCode> FakeBackend::failure() const {
  const auto here = fails_at.find(asked_);
  return here == fails_at.end() ? fails : here->second;
}

FaultPoint::Fate FakeBackend::before(const FakeCall& call) {
  verbs.emplace_back(call.verb);
  if (failure() == ErrorCode::unavailable) return Fate::unavailable;
  return failure() == ErrorCode::conflict ? Fate::conflict : Fate::happens;
}

bool FakeBackend::after(const FakeCall&) { return failure() != ErrorCode::in_doubt; }

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
  const std::array ids{Candidate{job, database.find(job)->type_id, {}}};
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

void FakeBackend::with(Place place, const std::function<void(Stores&)>& work) {
  FakeDatabase& there = database_at(place);
  FakeJobDesk desk(there, nullptr, this);
  FakeReportStore reports(there, nullptr, this);
  FakeTypeStore types(there, nullptr, this);
  Stores stores{place, desk, reports, types};
  const Place before = std::exchange(asked_, place);
  work(stores);
  asked_ = before;
}

bool FakeBackend::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  if (is_full) return false;
  const Place place = place_of(shard_of(job.biz_id, shards()));
  if (const auto why = why_not(place)) return done(*why), true;
  const std::array jobs{std::move(job)};
  Result<std::vector<CreateReply>> replies = std::vector<CreateReply>{};
  with(place, [&](Stores& stores) { replies = stores.desk.create(jobs, CreateMode::each_by_itself); });
  if (replies)
    done(std::move(replies->front()));
  else
    done(replies.error());
  return true;
}

bool FakeBackend::cancel(JobId job, std::function<void(Result<CancelReply>)> done) {
  if (is_full) return false;
  const Place place = place_of(shard_of(job));
  if (const auto why = why_not(place)) return done(*why), true;
  const std::array jobs{job};
  Result<std::vector<CancelReply>> replies = std::vector<CancelReply>{};
  with(place, [&](Stores& stores) { replies = stores.desk.cancel(jobs); });
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

bool FakeBackend::post(Place place, std::function<void(Stores&)> work) {
  if (is_full || full_at.contains(place)) return false;
  ++posted;
  with(place, work);
  return true;
}

std::vector<Place> FakeBackend::places() const {
  std::vector<Place> places;
  for (Place place = 0; place <= static_cast<Place>(others_.size()); ++place)
    if (!unknown.contains(place)) places.push_back(place);
  return places;
}

std::optional<Error> FakeBackend::why_not(Place place) const {
  if (!unknown.contains(place)) return {};
  return Error{ErrorCode::unavailable, "this node was not given it", ""};
}

Status FakeBackend::make_types_known(Stores& stores) {
  return stores.place == 0 ? Unit{} : stores.types.mirror(database.list_types());
}

void FakeBackend::mirror_types(std::function<void()> done) {
  for (const Place place : places())
    with(place, [this](Stores& stores) { static_cast<void>(make_types_known(stores)); });
  done();
}

Status FakeBackend::reload_types(Stores&) {
  ++reloads;
  catalog_ = std::make_shared<TypeCatalog>(database.list_types());
  return Unit{};
}

}  // namespace tocsin
