#include "simulation/callers.h"

#include <algorithm>

namespace tocsin {
namespace {

constexpr Duration kMillisecond = std::chrono::milliseconds(1);
constexpr Duration kSecond = std::chrono::seconds(1);

Duration up_to(Random& random, Duration most) {
  return Duration(random.below(static_cast<std::uint64_t>(most.count()) + 1));
}

}  // namespace

Callers::Callers(SimContext& world, std::vector<SimNode*> nodes, std::vector<TypeId> types, std::vector<TypeId> prompt,
                 Duration lookahead)
    : world_(world),
      nodes_(std::move(nodes)),
      types_(std::move(types)),
      prompt_(std::move(prompt)),
      lookahead_(lookahead) {}

void Callers::begin(int n, MonoTime end) {
  for (int i = 0; i < n; ++i) {
    world_.scheduler.spawn([this, i, end] {
      FakeJobDesk desk(world_.database, &world_.scheduler, &world_.faults, 100 + i);
      while (world_.scheduler.now() < end) {
        act(desk);
        // Now a burst, now a pause.
        world_.scheduler.sleep(world_.random.below(3) == 0 ? up_to(world_.random, 4 * kSecond)
                                                           : up_to(world_.random, 20 * kMillisecond));
      }
    });
  }
}

void Callers::act(FakeJobDesk& desk) {
  const auto dice = known_.empty() ? 0 : world_.random.below(20);
  if (dice < 12) return create(desk);
  if (dice < 15) return cancel(desk);
  if (dice < 18) return change(desk);
  return repair(desk);
}

When Callers::any_time() {
  const auto dice = world_.random.below(10);
  const Duration in = dice < 3   ? Duration(0)
                      : dice < 7 ? up_to(world_.random, 6 * kSecond)
                                 : up_to(world_.random, 30 * kSecond);
  if (world_.random.below(2) == 0) return {{}, in};
  // An instant that the caller read off a clock some time ago: it may have passed.
  return {world_.database.now() + in - up_to(world_.random, 2 * kSecond), {}};
}

NewJob Callers::any_job() {
  NewJob job;
  job.type_id = types_[world_.random.below(types_.size())];
  job.biz_id = "order-" + std::to_string(world_.random.below(8) == 0 ? world_.random.below(20)
                                                                     : static_cast<std::uint64_t>(100 + ++last_biz_));
  job.when = any_time();
  job.max_attempts = static_cast<int>(1 + world_.random.below(4));
  if (world_.random.below(4) == 0) {
    job.biz_id = "keyed-" + std::to_string(world_.random.below(5));
    job.idempotency_key = "key-" + std::to_string(world_.random.below(6));
    job.on_conflict = static_cast<OnConflict>(world_.random.below(5));
    job.has_own_max_attempts = true;
  }
  return job;
}

NewJob Callers::any_prompt_job() {
  NewJob job = any_job();
  job.idempotency_key.reset();
  job.type_id = prompt_[world_.random.below(prompt_.size())];
  return job;
}

void Callers::create(FakeJobDesk& desk) {
  std::vector<NewJob> jobs;
  const auto n = world_.random.below(10) == 0 ? 20 : 1 + world_.random.below(3);
  for (std::uint64_t i = 0; i < n; ++i) jobs.push_back(any_job());
  const auto mode = world_.random.below(2) == 0 ? CreateMode::all_or_nothing : CreateMode::each_by_itself;
  const auto replies = desk.create(jobs, mode);
  if (!replies) return;
  if (mode == CreateMode::all_or_nothing && std::ranges::any_of(*replies, &CreateReply::is_refused)) return;
  const bool is_rest = world_.random.below(3) != 0;
  for (std::size_t i = 0; i < replies->size(); ++i) {
    const CreateReply& reply = (*replies)[i];
    if (reply.is_refused()) continue;
    world_.checker.on_created(reply.job_id);
    known_.push_back(reply.job_id);
    Job job;
    job.job_id = reply.job_id;
    job.type_id = jobs[i].type_id;
    job.fire_at = reply.fire_at;
    if (is_rest && reply.kind != CreateReply::Kind::existing) hint(job);
  }
  if (!is_rest && world_.random.below(2) == 0) notify();
}

JobId Callers::any_known() {
  // The young ones: those still have something before them.
  const std::size_t recent = std::min<std::size_t>(known_.size(), 40);
  return known_[known_.size() - 1 - world_.random.below(recent)];
}

void Callers::cancel(FakeJobDesk& desk) {
  std::vector<JobId> jobs;
  for (std::uint64_t i = 0; i <= world_.random.below(3); ++i) jobs.push_back(any_known());
  std::ranges::sort(jobs);
  jobs.erase(std::ranges::unique(jobs).begin(), jobs.end());
  const bool is_by_key = world_.random.below(5) == 0;
  const auto replies =
      is_by_key ? desk.cancel_all("keyed-" + std::to_string(world_.random.below(5)), std::nullopt) : desk.cancel(jobs);
  if (!replies) return;
  for (const CancelReply& reply : *replies) world_.checker.on_cancel_reply(reply);
}

void Callers::cancel_later(std::vector<JobId> jobs, Duration in) {
  if (jobs.empty()) return;
  world_.scheduler.spawn([this, jobs = std::move(jobs), in] {
    world_.scheduler.sleep(in);
    FakeJobDesk desk(world_.database, &world_.scheduler, &world_.faults, 99);
    const auto replies = desk.cancel(jobs);
    if (!replies) return;
    for (const CancelReply& reply : *replies) world_.checker.on_cancel_reply(reply);
  });
}

void Callers::change(FakeJobDesk& desk) {
  const auto reply = world_.random.below(2) == 0 ? desk.reschedule(any_known(), any_time()) : desk.run_now(any_known());
  if (reply && reply->kind == ChangeReply::Kind::changed) hint(*reply->job);
}

void Callers::repair(FakeJobDesk& desk) {
  if (world_.random.below(3) == 0) {
    JobDesk::RetryMany request;
    request.type_id = types_[world_.random.below(types_.size())];
    request.limit = 3;
    request.rate_per_s = 2;
    static_cast<void>(desk.retry_many(request));
    return;
  }
  const auto reply = desk.retry(any_known());
  if (reply && reply->kind == ChangeReply::Kind::changed) hint(*reply->job);
}

void Callers::hint(const Job& job) {
  if (world_.random.below(10) == 0 && !world_.checker.is_calm()) return;  // lost on the way
  if (job.fire_at > world_.database.now() + lookahead_) return;
  for (SimNode* node : nodes_) {
    if (!node->is_up() || !std::ranges::binary_search(node->shards(), shard_of(job.job_id))) continue;
    const bool is_taken = node->engine()->hint({job.job_id, job.type_id, job.fire_at});
    world_.trace.line(world_.scheduler.now(), node->name() + (is_taken ? " takes" : " refuses") + " the hint of job " +
                                                  std::to_string(job.job_id));
  }
}

void Callers::notify() {
  for (SimNode* node : nodes_)
    if (node->is_up()) node->engine()->request_sweep();
}

void Callers::probe(int n, Duration on_time, Duration scan_interval) {
  for (int i = 0; i < n; ++i) {
    world_.scheduler.spawn([this, on_time, scan_interval] {
      FakeJobDesk desk(world_.database, &world_.scheduler, &world_.faults, 99);
      world_.scheduler.sleep(up_to(world_.random, 4 * kSecond));
      NewJob job = any_prompt_job();
      job.when = {{}, up_to(world_.random, 10 * kSecond)};
      const auto replies = desk.create({&job, 1}, CreateMode::all_or_nothing);
      if (!replies) return world_.checker.fail("calm", "a create failed without any fault: " + replies.error().message);
      const CreateReply& reply = replies->front();
      world_.checker.on_created(reply.job_id);
      const bool is_hinted = world_.random.below(2) == 0;
      // Nearer ones appear behind the scanner's cursor: the first scan after their time finds them.
      const bool is_seen_by_a_scan = *job.when.in > lookahead_ + scan_interval + on_time;
      world_.checker.expect_within(reply.job_id, is_hinted || is_seen_by_a_scan ? on_time : scan_interval + on_time);
      Job created;
      created.job_id = reply.job_id;
      created.type_id = job.type_id;
      created.fire_at = reply.fire_at;
      if (is_hinted) hint(created);
    });
  }
}

void Callers::commit_late(Duration age, Duration bound) {
  NewJob job = any_prompt_job();
  job.when = {{}, Duration(0)};
  const auto replies = world_.database.create({job}, CreateMode::all_or_nothing, world_.database.now() - age);
  world_.checker.expect_within(replies->front().job_id, age + bound);
}

void Callers::commit_ahead(Duration in, Duration on_time) {
  NewJob job = any_prompt_job();
  job.when = {{}, in};
  const auto replies = world_.database.create({job}, CreateMode::all_or_nothing, world_.database.now());
  world_.checker.expect_within(replies->front().job_id, on_time);
}

void Callers::rush(int n, std::optional<TypeId> type) {
  for (int i = 0; i < n; ++i) {
    NewJob job = any_job();
    job.idempotency_key.reset();
    job.type_id = type.value_or(job.type_id);
    job.when = {{}, Duration(0)};
    const auto replies = world_.database.create({job}, CreateMode::all_or_nothing, world_.database.now());
    Job created;
    created.job_id = replies->front().job_id;
    created.type_id = job.type_id;
    created.fire_at = replies->front().fire_at;
    hint(created);
  }
}

}  // namespace tocsin
