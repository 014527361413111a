#include "simulation/callers.h"

#include <algorithm>
#include <map>

#include "support/fake_transaction.h"

namespace tocsin {
namespace {

constexpr Duration kMillisecond = std::chrono::milliseconds(1);
constexpr Duration kSecond = std::chrono::seconds(1);

Duration up_to(Random& random, Duration most) {
  return Duration(random.below(static_cast<std::uint64_t>(most.count()) + 1));
}

Candidate candidate(const Job& job) { return {job.job_id, job.type_id, job.fire_at}; }

}  // namespace

Callers::Callers(SimContext& world, std::vector<SimNode*> nodes, std::vector<TypeId> types, std::vector<TypeId> prompt,
                 Duration lookahead)
    : world_(world),
      nodes_(std::move(nodes)),
      types_(std::move(types)),
      prompt_(std::move(prompt)),
      lookahead_(lookahead) {}

template <class Work>
auto Callers::ask(DatabaseId database_id, int session, Work work) {
  SimDatabase& database = world_.databases.at(database_id);
  const auto generation = database.data.generation();
  FakeClientStore client_store(database.data, &world_.scheduler, &database.faults, session);
  auto reply = work(client_store);
  if (generation != database.data.generation()) reply = Error{ErrorCode::in_doubt, "of another server", ""};
  return reply;
}

SimDatabase& Callers::database_of(const NewJob& job) {
  return world_.databases.at(world_.databases.database_of(shard_of(job.biz_id, world_.databases.shards())));
}

void Callers::begin(int n, MonoTime end) {
  for (int i = 0; i < n; ++i) {
    world_.scheduler.spawn([this, i, end] {
      while (world_.scheduler.now() < end) {
        act(100 + i);
        // Now a burst, now a pause.
        world_.scheduler.sleep(world_.random.below(3) == 0 ? up_to(world_.random, 4 * kSecond)
                                                           : up_to(world_.random, 20 * kMillisecond));
      }
    });
  }
}

void Callers::act(int session) {
  const auto dice = known_.empty() ? 0 : world_.random.below(20);
  if (dice < 11) return create(session);
  if (dice < 12) return run_business();
  if (dice < 15) return cancel(session);
  if (dice < 18) return change(session);
  return repair(session);
}

When Callers::any_time(const SimDatabase& database) {
  const auto dice = world_.random.below(10);
  const Duration in = dice < 3   ? Duration(0)
                      : dice < 7 ? up_to(world_.random, 6 * kSecond)
                                 : up_to(world_.random, 30 * kSecond);
  if (world_.random.below(2) == 0) return {{}, in};
  // An instant that the caller read off a clock some time ago: it may have passed.
  return {database.data.now() + in - up_to(world_.random, 2 * kSecond), {}};
}

NewJob Callers::any_job() {
  NewJob job;
  job.type_id = types_[world_.random.below(types_.size())];
  job.biz_id = "order-" + std::to_string(world_.random.below(8) == 0 ? world_.random.below(20)
                                                                     : static_cast<std::uint64_t>(100 + ++last_biz_));
  job.max_attempts = static_cast<int>(1 + world_.random.below(4));
  if (world_.random.below(4) == 0) {
    job.biz_id = "keyed-" + std::to_string(world_.random.below(5));
    job.idempotency_key = "key-" + std::to_string(world_.random.below(6));
    job.on_conflict = static_cast<OnConflict>(world_.random.below(5));
    job.has_own_max_attempts = true;
  }
  job.when = any_time(database_of(job));
  return job;
}

NewJob Callers::any_job_in(std::optional<DatabaseId> database_id, std::optional<DatabaseId> away) {
  NewJob job = any_job();
  job.idempotency_key.reset();
  while ((database_id && database_of(job).id != *database_id) || (away && database_of(job).id == *away))
    job.biz_id = "order-" + std::to_string(100 + ++last_biz_);
  return job;
}

NewJob Callers::any_prompt_job(std::optional<DatabaseId> away) {
  NewJob job = any_job_in({}, away);
  job.type_id = prompt_[world_.random.below(prompt_.size())];
  return job;
}

void Callers::run_business() {
  world_.scheduler.spawn([this] {
    NewJob job = any_job();
    SimDatabase& database = database_of(job);
    FakeDatabase::Transaction transaction(database.data);
    std::vector<JobId> made;
    std::optional<CancelReply> cancelled;
    for (std::uint64_t i = 0; i <= world_.random.below(3); ++i) {
      job.on_conflict = OnConflict::keep;
      const auto reply = transaction.create(job, database.data.now());
      if (!reply) return;  // it would wait for another one
      if (!reply->is_refused()) made.push_back(reply->job_id);
      world_.scheduler.sleep(up_to(world_.random, world_.random.below(4) == 0 ? 8 * kSecond : 50 * kMillisecond));
      job = any_job_in(database.id, {});
    }
    if (const JobId other = known_.empty() ? 0 : any_known();
        other != 0 && world_.databases.of(other).id == database.id) {
      cancelled = transaction.cancel(other, database.data.now());
      world_.checker.on_locked(other);
      world_.scheduler.sleep(up_to(world_.random, 100 * kMillisecond));
    }
    if (world_.random.below(3) == 0 || !transaction.commit()) return;
    for (const JobId id : made) {
      world_.checker.on_created(id);
      known_.push_back(id);
    }
    if (cancelled) world_.checker.on_cancel_reply(*cancelled);
  });
}

// A batch is one transaction per database.
void Callers::create(int session) {
  std::map<DatabaseId, std::vector<NewJob>> batches;
  const auto n = world_.random.below(10) == 0 ? 20 : 1 + world_.random.below(3);
  for (std::uint64_t i = 0; i < n; ++i) {
    const NewJob job = any_job();
    batches[database_of(job).id].push_back(job);
  }
  const auto mode = world_.random.below(2) == 0 ? CreateMode::all_or_nothing : CreateMode::each_by_itself;
  const bool is_rest = world_.random.below(3) != 0;
  for (const auto& [database_id, jobs] : batches) {
    const auto replies = ask(database_id, session, [&, batch = std::span(jobs)](FakeClientStore& client_store) {
      return client_store.create(batch, mode);
    });
    if (!replies) continue;
    if (mode == CreateMode::all_or_nothing && std::ranges::any_of(*replies, &CreateReply::is_refused)) continue;
    for (std::size_t i = 0; i < replies->size(); ++i) note_created(jobs[i], (*replies)[i], is_rest);
    if (!is_rest && world_.random.below(2) == 0) notify(database_id);
  }
}

void Callers::note_created(const NewJob& asked, const CreateReply& reply, bool is_rest) {
  if (reply.is_refused()) return;
  world_.checker.on_created(reply.job_id);
  known_.push_back(reply.job_id);
  if (is_rest && reply.kind != CreateReply::Kind::existing) hint({reply.job_id, asked.type_id, reply.fire_at});
}

JobId Callers::any_known() {
  // The young ones: those still have something before them.
  const std::size_t recent = std::min<std::size_t>(known_.size(), 40);
  return known_[known_.size() - 1 - world_.random.below(recent)];
}

void Callers::cancel(int session) {
  std::vector<JobId> jobs;
  for (std::uint64_t i = 0; i <= world_.random.below(3); ++i) jobs.push_back(any_known());
  if (world_.random.below(3) == 0) jobs.push_back(jobs.front());
  if (world_.random.below(5) > 0) return cancel_these(jobs, session);
  const std::string biz_id = "keyed-" + std::to_string(world_.random.below(5));
  const DatabaseId database_id = world_.databases.database_of(shard_of(biz_id, world_.databases.shards()));
  const auto reply = ask(database_id, session,
                         [&](FakeClientStore& client_store) { return client_store.cancel_all(biz_id, std::nullopt); });
  if (reply) note_cancelled(reply->jobs);
}

void Callers::cancel_these(const std::vector<JobId>& jobs, int session) {
  std::map<DatabaseId, std::vector<JobId>> batches;
  for (const JobId job : jobs) batches[world_.databases.of(job).id].push_back(job);
  for (const auto& each : batches) {
    const std::vector<JobId>& batch = each.second;
    // Together, as requests that came at once: some of them for one job.
    const bool is_together = world_.random.below(2) == 0;
    note_cancelled(ask(each.first, session, [&](FakeClientStore& client_store) -> Result<std::vector<CancelReply>> {
      if (!is_together) return client_store.cancel(batch, LockWait::none);
      ChangeBatch together;
      together.cancels = batch;
      auto replies = client_store.change_together(together);
      if (!replies) return replies.error();
      std::vector<CancelReply> told;  // a refused job was not cancelled
      for (const Result<CancelReply>& reply : replies->cancels)
        if (reply) told.push_back(*reply);
      return told;
    }));
  }
}

void Callers::note_cancelled(const Result<std::vector<CancelReply>>& replies) {
  if (!replies) return;
  for (const CancelReply& reply : *replies) world_.checker.on_cancel_reply(reply);
}

void Callers::cancel_later(std::vector<JobId> jobs, Duration in) {
  if (jobs.empty()) return;
  world_.scheduler.spawn([this, jobs = std::move(jobs), in] {
    world_.scheduler.sleep(in);
    cancel_these(jobs, 99);
  });
}

void Callers::change(int session) {
  const JobId job = any_known();
  SimDatabase& database = world_.databases.of(job);
  const bool is_move = world_.random.below(2) == 0;
  const When when = any_time(database);
  ChangeBatch batch;
  batch.changes.push_back({job, is_move ? std::optional(when) : std::nullopt});
  const auto replies =
      ask(database.id, session, [&](FakeClientStore& client_store) { return client_store.change_together(batch); });
  if (!replies || !replies->changes.front()) return;
  const ChangeReply& reply = *replies->changes.front();
  if (reply.kind == ChangeReply::Kind::changed) hint(candidate(*reply.job));
}

void Callers::repair(int session) {
  const JobId job = any_known();
  const DatabaseId database_id = world_.databases.of(job).id;
  if (world_.random.below(3) == 0) {
    ClientStore::RetryMany request;
    request.type_id = types_[world_.random.below(types_.size())];
    request.limit = 3;
    request.rate_per_s = 2;
    static_cast<void>(
        ask(database_id, session, [&](FakeClientStore& client_store) { return client_store.retry_many(request); }));
    return;
  }
  const auto reply = ask(database_id, session, [&](FakeClientStore& client_store) {
    return client_store.retry_each({&job, 1});
  });
  if (reply && reply->front() && reply->front()->kind == ChangeReply::Kind::changed)
    hint(candidate(*reply->front()->job));
}

void Callers::hint(const Candidate& job) {
  if (world_.random.below(10) == 0 && !world_.checker.is_calm()) return;  // lost on the way
  if (job.fire_at > world_.databases.of(job.job_id).data.now() + lookahead_) return;
  for (SimNode* node : nodes_) node->hint(job);
}

void Callers::notify(DatabaseId database_id) {
  for (SimNode* node : nodes_) node->sweep(database_id);
}

void Callers::probe(int n, Duration on_time, Duration scan_interval, std::optional<DatabaseId> away) {
  for (int i = 0; i < n; ++i) {
    world_.scheduler.spawn([this, on_time, scan_interval, away] {
      world_.scheduler.sleep(up_to(world_.random, 4 * kSecond));
      NewJob job = any_prompt_job(away);
      job.when = {{}, up_to(world_.random, 10 * kSecond)};
      const auto replies = ask(database_of(job).id, 99, [&](FakeClientStore& client_store) {
        return client_store.create({&job, 1}, CreateMode::all_or_nothing);
      });
      if (!replies) return world_.checker.fail("calm", "a create failed without any fault: " + replies.error().message);
      const CreateReply& reply = replies->front();
      world_.checker.on_created(reply.job_id);
      const bool is_hinted = world_.random.below(2) == 0;
      // Nearer ones appear behind the scanner's cursor: the first scan after their time finds them.
      const bool is_seen_by_a_scan = *job.when.in > lookahead_ + scan_interval + on_time;
      world_.checker.expect_within(reply.job_id, is_hinted || is_seen_by_a_scan ? on_time : scan_interval + on_time);
      if (is_hinted) hint({reply.job_id, job.type_id, reply.fire_at});
    });
  }
}

// Nothing on the way: it is there.
CreateReply Callers::commit(const NewJob& job, Duration age) {
  FakeDatabase& data = database_of(job).data;
  return data.create({job}, CreateMode::all_or_nothing, data.now() - age)->front();
}

void Callers::commit_late(Duration age, Duration bound, Duration id_delay) {
  world_.scheduler.spawn([this, age, bound, id_delay] {
    NewJob job = any_prompt_job();
    job.when = {{}, Duration(0)};
    FakeDatabase& data = database_of(job).data;
    const WallTime clock = data.now();
    world_.scheduler.sleep(id_delay);
    const FakeDatabase::Writer writer(data, data.now());
    world_.scheduler.sleep(age - id_delay);
    const auto reply = data.create({job}, CreateMode::all_or_nothing, clock);
    world_.checker.expect_within(reply->front().job_id, age + bound);
  });
}

void Callers::commit_ahead(Duration in, Duration on_time) {
  NewJob job = any_prompt_job();
  job.when = {{}, in};
  world_.checker.expect_within(commit(job, Duration(0)).job_id, on_time);
}

void Callers::rush(int n, std::optional<TypeId> type, std::optional<DatabaseId> database_id) {
  for (int i = 0; i < n; ++i) create_now(type, database_id);
}

void Callers::rush_at(Duration from_now, int n, TypeId type) {
  for (int i = 0; i < n; ++i) create_at(from_now, type);
}

JobId Callers::create_at(Duration from_now, TypeId type) {
  const JobId job = create_unheard_at(from_now, type);
  hint({job, type, world_.databases.of(job).data.find(job)->fire_at});
  return job;
}

JobId Callers::create_unheard_at(Duration from_now, TypeId type) {
  NewJob job = any_job_in({}, {});
  job.type_id = type;
  job.when = {{}, from_now};
  return commit(job, Duration(0)).job_id;
}

void Callers::create_overdue(Duration age, DatabaseId database_id) {
  NewJob job = any_job_in(database_id, {});
  job.type_id = prompt_[world_.random.below(prompt_.size())];
  job.when = {{}, Duration(0)};
  world_.has_foreign_writer = true;  // its clock was read long before its transaction had an id
  const CreateReply reply = commit(job, age);
  hint({reply.job_id, job.type_id, reply.fire_at});
}

JobId Callers::create_now(std::optional<TypeId> type, std::optional<DatabaseId> database_id) {
  NewJob job = any_job_in(database_id, {});
  job.type_id = type.value_or(job.type_id);
  job.when = {{}, Duration(0)};
  const CreateReply reply = commit(job, Duration(0));
  hint({reply.job_id, job.type_id, reply.fire_at});
  return reply.job_id;
}

}  // namespace tocsin
