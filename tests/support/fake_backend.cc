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

FaultPoint::Effect FakeBackend::before(const FakeCall& call) {
  verbs.emplace_back(call.verb);
  if (failure() == ErrorCode::unavailable) return Effect::unavailable;
  return failure() == ErrorCode::conflict ? Effect::conflict : Effect::happens;
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
  TOCSIN_ASSERT(claimed && claimed->won.size() == 1);
  return claimed->won.front().token;
}

void FakeBackend::finish(JobId job, FinishRequest::Kind kind, const std::string& message) {
  const std::array requests{FinishRequest{job, claim(job), kind, std::chrono::seconds(10), message}};
  const auto replies = store_.finish(requests, node_name());
  TOCSIN_ASSERT(replies && replies->front() == FinishReply::applied);
}

void FakeBackend::with(DatabaseId database_id, const std::function<void(Stores&)>& work) {
  FakeDatabase& there = database_at(database_id);
  FakeClientStore client_store(there, nullptr, this);
  FakeReportStore reports(there, nullptr, this);
  FakeTypeStore types(there, nullptr, this);
  Stores stores{database_id, client_store, reports, types, queued};
  const DatabaseId before = std::exchange(asked_, database_id);
  work(stores);
  asked_ = before;
}

void FakeBackend::after_outboxes(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) {
  if (others_.empty()) return proceed(Unasked{});
  if (const auto once = std::exchange(relay, nullptr)) once();
  for (const EntryQuery& query : queries)
    if (in_outbox.contains(query.job_id) || keys_in_outbox.contains(query.biz_id))
      return proceed(Error{ErrorCode::conflict, "The job is on its way", kInOutbox});
  Unasked unasked;
  for (const DatabaseId database_id : database_ids())
    if (!is_answering(database_id)) unasked.push_back(database_id);
  proceed(unasked);
}

bool FakeBackend::post_bulk(std::function<void(BulkAccess&)> work) {
  if (is_full) return false;
  const std::vector<BulkDatabase> stores{{0, &bulks}};
  bulks.now = time;
  BulkAccess access{1, stores, bulk_runner};
  work(access);
  return true;
}

template <class Reply>
bool FakeBackend::ask(Shard shard, const std::function<void(Result<Reply>)>& done,
                      const std::function<Result<Reply>(ClientStore&)>& verb) {
  const DatabaseId database_id = database_of(shard);
  if (is_full || full_at.contains(database_id)) return false;
  if (const auto why = unavailable_reason(database_id)) return done(*why), true;
  if (before_work) before_work();
  Result<Reply> reply = Error{ErrorCode::unavailable, "was not asked", ""};
  with(database_id, [&](Stores& stores) { reply = verb(stores.client_store); });
  done(std::move(reply));
  return true;
}

bool FakeBackend::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  const Shard shard = shard_of(job.biz_id, shards());
  return ask<CreateReply>(shard, done, [&](ClientStore& client_store) -> Result<CreateReply> {
    auto replies = client_store.create({&job, 1}, CreateMode::each_by_itself);
    if (!replies) return replies.error();
    return std::move(replies->front());
  });
}

bool FakeBackend::cancel(JobId job, std::function<void(Result<CancelReply>)> done) {
  return ask<CancelReply>(shard_of(job), done, [&](ClientStore& client_store) -> Result<CancelReply> {
    auto replies = client_store.cancel({&job, 1}, LockWait::none);
    if (!replies) return replies.error();
    return std::move(replies->front());
  });
}

bool FakeBackend::cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) {
  const Shard shard = shard_of(key.biz_id, shards());
  return ask<KeyCancelReply>(shard, done, [&](ClientStore& client_store) -> Result<KeyCancelReply> {
    ChangeBatch batch;
    batch.key_cancels.push_back(key);
    auto reply = client_store.change_together(batch);
    if (!reply) return reply.error();
    return std::move(reply->key_cancels.front());
  });
}

bool FakeBackend::retry(JobId job, std::function<void(Result<ChangeReply>)> done) {
  return ask<ChangeReply>(shard_of(job), done, [&](ClientStore& client_store) -> Result<ChangeReply> {
    auto replies = client_store.retry_each({&job, 1});
    if (!replies) return replies.error();
    return std::move(replies->front());
  });
}

bool FakeBackend::change(PendingChange change, std::function<void(Result<ChangeReply>)> done) {
  return ask<ChangeReply>(shard_of(change.job), done, [&](ClientStore& client_store) -> Result<ChangeReply> {
    ChangeBatch batch;
    batch.changes.push_back(change);
    auto reply = client_store.change_together(batch);
    if (!reply) return reply.error();
    return std::move(reply->changes.front());
  });
}

bool FakeBackend::get(JobId job, std::function<void(Result<std::optional<Job>>)> done) {
  return ask<std::optional<Job>>(shard_of(job), done, [&](ClientStore& client_store) -> Result<std::optional<Job>> {
    auto jobs = client_store.find({&job, 1});
    if (!jobs) return jobs.error();
    return std::move(jobs->front());
  });
}

bool FakeBackend::list_key(KeyQuery query, std::function<void(Result<KeyList>)> done) {
  const Shard shard = shard_of(query.biz_id, shards());
  return ask<KeyList>(shard, done, [&](ClientStore& client_store) -> Result<KeyList> {
    auto lists = client_store.list_keys({&query, 1});
    if (!lists) return lists.error();
    return std::move(lists->front());
  });
}

bool FakeBackend::lease(LeaseCall call) {
  if (is_full) return false;
  leases.push_back(call);
  std::vector<ClaimedJob> jobs;
  for (int shard = 0; shard < shards() && jobs.size() < call.max; ++shard) {
    const Lane lane{static_cast<Shard>(shard), call.type_id};
    auto claims = store_.claim_due(lane, WallTime::min(), static_cast<int>(call.max - jobs.size()), call.ttr,
                                   {.seed = static_cast<std::int64_t>(leases.size()), .node = node_name()});
    if (claims) jobs.insert(jobs.end(), claims->won.begin(), claims->won.end());
  }
  call.done(std::move(jobs));
  return true;
}

namespace {

// As a node answers a call whose rows are all locked, or all refused.
Result<std::vector<LeaseResult>> unless_all_locked(Result<std::vector<LeaseResult>> replies) {
  const auto are_all = [&](LeaseReply kind) {
    return std::ranges::all_of(*replies, [kind](const LeaseResult& reply) { return reply.kind == kind; });
  };
  if (!replies || replies->empty()) return replies;
  if (are_all(LeaseReply::refused)) return Error{ErrorCode::unavailable, replies->front().why, kRefused};
  if (!are_all(LeaseReply::busy)) return replies;
  return Error{ErrorCode::conflict, "another transaction holds its row", ""};
}

}  // namespace

bool FakeBackend::finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                                std::function<void(Result<std::vector<LeaseResult>>)> done) {
  return post(database_id, [this, outcomes = std::move(outcomes), done = std::move(done)](Stores& stores) {
    done(unless_all_locked(stores.client_store.finish_leased(outcomes, node_name())));
  });
}

bool FakeBackend::extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                                std::function<void(Result<std::vector<LeaseResult>>)> done) {
  return post(database_id, [extensions = std::move(extensions), done = std::move(done)](Stores& stores) {
    done(unless_all_locked(stores.client_store.extend(extensions)));
  });
}

bool FakeBackend::read_leases(DatabaseId database_id, std::vector<Lease> asked,
                              std::function<void(Result<std::vector<std::optional<LeasedJob>>>)> done) {
  ++posted_lease_reads;
  return post(database_id, [asked = std::move(asked), done = std::move(done)](Stores& stores) {
    done(stores.client_store.leased(asked));
  });
}

bool FakeBackend::post(DatabaseId database_id, std::function<void(Stores&)> work) {
  if (is_full || full_at.contains(database_id) || takes == 0) return false;
  --takes;
  ++posted;
  if (before_work) before_work();
  if (is_holding)
    held.emplace_back(database_id, std::move(work));
  else
    with(database_id, work);
  return true;
}

void FakeBackend::run_held() {
  is_holding = false;
  for (std::size_t i = 0; i < held.size(); ++i) with(held[i].first, std::exchange(held[i].second, {}));
  held.clear();
}

std::vector<DatabaseId> FakeBackend::database_ids() const {
  std::vector<DatabaseId> database_ids;
  for (DatabaseId database_id = 0; database_id <= static_cast<DatabaseId>(others_.size()); ++database_id)
    if (!unknown.contains(database_id)) database_ids.push_back(database_id);
  return database_ids;
}

std::optional<Error> FakeBackend::unavailable_reason(DatabaseId database_id) const {
  if (!unknown.contains(database_id)) return {};
  return Error{ErrorCode::unavailable, "this node was not started with it", ""};
}

Status FakeBackend::make_types_known(Stores& stores) {
  return stores.database_id == 0 ? Unit{} : stores.types.mirror(database.list_types(TypeStore::Removed::included));
}

void FakeBackend::mirror_types(std::function<void()> done) {
  for (const DatabaseId database_id : database_ids())
    with(database_id, [this](Stores& stores) { static_cast<void>(make_types_known(stores)); });
  done();
}

Status FakeBackend::reload_types(Stores& stores) {
  ++reloads;
  if (stores.database_id != 0) return Unit{};
  auto types = stores.types.list(TypeStore::Removed::included);
  if (!types) return types.error();
  catalog_ = std::make_shared<TypeCatalog>(std::move(*types));
  return Unit{};
}

}  // namespace tocsin
