#include "pipeline/engine.h"

#include <algorithm>

#include "base/assert.h"
#include "base/random.h"

namespace tocsin {

Engine::Engine(EngineConfig config, std::vector<Shard> owned, EngineStores stores, HandlerFinder find_handler,
               EventSink& events, std::uint64_t seed, std::shared_ptr<PollQueue> polls)
    : shared_(std::move(config), std::move(owned), events, std::move(polls)),
      scanner_(shared_, stores.scanner),
      timekeeper_(shared_),
      poll_timeout_sweeper_(shared_),
      runner_(shared_, std::move(find_handler)),
      finisher_(shared_, stores.finisher, Random(seed).below(UINT64_MAX)),
      lease_reaper_(shared_, stores.lease_reaper) {
  Random random(seed);
  for (JobStore* store : stores.claimers) {
    const ClaimerRole role = claimers_.empty()                 ? ClaimerRole::primary
                             : store == stores.claimers.back() ? ClaimerRole::priority
                                                               : ClaimerRole::secondary;
    claimers_.push_back(std::make_unique<Claimer>(shared_, *store, static_cast<std::uint64_t>(random.int64()), role));
  }
}

std::vector<Stage*> Engine::stages() {
  std::vector<Stage*> all{&scanner_, &timekeeper_, &poll_timeout_sweeper_};
  for (const auto& claimer : claimers_) all.push_back(claimer.get());
  all.push_back(&runner_);
  all.push_back(&finisher_);
  all.push_back(&lease_reaper_);
  return all;
}

void Engine::set_wakers(const std::vector<Waker*>& wakers) {
  const auto all = stages();
  TOCSIN_ASSERT(wakers.size() == all.size());
  wakers_ = wakers;
  const auto waker_of = [&](const Stage& stage) {
    const auto it = std::ranges::find(all, &stage);
    TOCSIN_ASSERT(it != all.end());
    return wakers[static_cast<std::size_t>(it - all.begin())];
  };
  std::vector<Waker*> claimers;
  claimers.reserve(claimers_.size());
  for (const auto& claimer : claimers_) claimers.push_back(waker_of(*claimer));
  const auto wake_claimers = [claimers] {
    for (Waker* claimer : claimers) claimer->wake();
  };
  Waker* const timekeeper = waker_of(timekeeper_);
  Waker* const lease_reaper = waker_of(lease_reaper_);
  shared_.ended_backlogs.set_consumer(waker_of(scanner_));
  shared_.candidates.set_consumer(timekeeper);
  shared_.db_clock.set_timekeeper(timekeeper);
  shared_.due.set_claimers(claimers);
  shared_.poll_engine = shared_.polls->join(claimers, waker_of(poll_timeout_sweeper_));
  shared_.limiter.on_release(wake_claimers);
  shared_.flow->on_capacity(wake_claimers);
  shared_.flow->leases().on_first([lease_reaper] { lease_reaper->wake(); });
  shared_.claimed.set_consumer(waker_of(runner_));
  shared_.outcomes.set_consumer(waker_of(finisher_));
  shared_.expired.set_consumer(lease_reaper);
  shared_.too_late.set_consumer(lease_reaper);
  shared_.on_refusal = [this] { scan_soon(); };
}

void EngineShared::hand_over(TypeId type, const std::vector<std::pair<Lease, WallTime>>& leases) {
  const auto types = catalog.get();
  const BizType* biz_type = types->find(type);
  if (!biz_type || !biz_type->max_running) return release(type, leases.size());
  for (const auto& [lease, ends] : leases) flow->leases().enter(type, lease, db_clock.when(ends));
  limiter.release(type, leases.size());
}

bool EngineShared::hint(const Candidate& job) {
  if (membership.is_draining()) return false;
  // Jobs of a paused type must not fill the memory; a scan finds them when the type resumes.
  const auto types = catalog.get();
  const BizType* type = types->find(job.type_id);
  if (type && type->is_paused(job.fire_at)) return false;
  const KnownJobs::Hint answer = known.offer_hint(job);
  if (answer == KnownJobs::Hint::left_to_scan) return false;
  if (answer != KnownJobs::Hint::entered) {
    events.count(Counter::refused);
    if (answer == KnownJobs::Hint::first_full && on_refusal) on_refusal();
    return false;
  }
  if (candidates.try_push(Candidate(job))) return true;
  known.remove(job.job_id);
  return false;
}

void Engine::request_sweep() {
  scanner_.request_sweep();
  if (!wakers_.empty()) wakers_.front()->wake();
}

void Engine::set_shards(std::vector<Shard> owned) {
  shared_.gained.note(*shared_.shards.get(), owned);
  shared_.shards.set(std::make_shared<const std::vector<Shard>>(std::move(owned)));
  scan_soon();
}

void Engine::trust_until(MonoTime time) {
  // Stopped stages continue, the scanner at once.
  if (shared_.membership.trust_until(time))
    scanner_.request_scan();
  else if (shared_.is_idle())
    return;
  wake_all();
}

void Engine::set_sole_member(bool is_sole_member) {
  if (shared_.membership.set_sole_member(is_sole_member) && !is_sole_member) scan_soon();
}

void Engine::set_listening(bool is_listening) {
  if (shared_.membership.set_listening(is_listening) && !is_listening) scan_soon();
}

// Some of what stages wait for changes without a wake-up, such as the database's clock. So while jobs are in memory
// every stage runs when a heartbeat or the types were read.
void Engine::wake_all() {
  for (Waker* waker : wakers_) waker->wake();
}

void Engine::scan_soon() {
  scanner_.request_scan();
  if (!wakers_.empty()) wakers_.front()->wake();
}

void Engine::set_catalog(std::shared_ptr<const TypeCatalog> catalog) {
  const auto before = shared_.catalog.get();
  const bool is_same = std::ranges::equal(
      before->types, catalog->types, [](const auto& one, const auto& other) { return one == other || *one == *other; });
  if (is_same && shared_.is_idle()) return;  // the node reads the types every few seconds
  shared_.catalog.set(std::move(catalog));
  if (!is_same) scanner_.request_scan();  // a type may have resumed
  wake_all();
}

void Engine::begin_drain() {
  shared_.membership.begin_drain();
  end_polls();
  wake_all();
}

}  // namespace tocsin
