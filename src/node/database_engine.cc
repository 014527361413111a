#include "node/database_engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/random.h"
#include "base/thread_guard.h"

namespace tocsin {
namespace {

constexpr Duration kListen = std::chrono::seconds(5);
constexpr Duration kListenAgain = std::chrono::milliseconds(500);

SessionConfig listening(SessionConfig session) {
  session.application = "tocsin listener";
  return session;
}

}  // namespace

PgJobStore& DatabaseEngine::new_store() {
  Session& session = sessions_.emplace_back(config_.session);
  return stores_.emplace_back(session, clock_);
}

JobStore& DatabaseEngine::new_finisher_store() {
  if (config_.others.sessions.empty()) return new_store();
  return outcomes_.emplace(sessions_.emplace_back(config_.session), clock_, config_.others,
                           [this](const Error& error) { events_.failed("finisher", error); });
}

EngineStores DatabaseEngine::make_stores(int claimers) {
  std::vector<JobStore*> claiming(static_cast<std::size_t>(claimers));
  for (JobStore*& store : claiming) store = &new_store();
  return {new_store(), claiming, new_finisher_store(), new_store()};
}

DatabaseEngine::DatabaseEngine(DatabaseEngineConfig config, const Clock& clock, EventSink& events,
                               HandlerFinder find_handler, std::shared_ptr<PollQueue> polls,
                               std::function<void()> on_types_changed, std::function<void()> on_members_changed)
    : config_(std::move(config)),
      clock_(clock),
      events_(events),
      on_types_changed_(std::move(on_types_changed)),
      on_members_changed_(std::move(on_members_changed)),
      engine_(config_.engine, {}, make_stores(config_.claimers + 1), std::move(find_handler), events, true_random(),
              std::move(polls)),
      notifications_(
          listening(config_.session), [this](Shard shard) { return owns(shard); }, config_.on_outbox != nullptr) {
  std::vector<Waker*> wakers;
  const auto on_step = [this](const char* stage, Duration took) {
    config_.on_step(stage, took);
    if (is_stopping_) note_step();
  };
  for (Stage* stage : engine_.stages()) {
    loops_.push_back(std::make_unique<LoopThread>(*stage, clock_, on_step));
    wakers.push_back(loops_.back().get());
  }
  engine_.set_wakers(wakers);
}

DatabaseEngine::~DatabaseEngine() {
  stop(Duration(0), [] {});
}

Status DatabaseEngine::connect() {
  for (PgJobStore& store : stores_) {
    if (auto done = store.warm_up(); !done) return done;
  }
  if (outcomes_)
    if (auto done = outcomes_->warm_up(); !done) return done;
  // Callers may ask for the time before the first scan.
  const auto reply = stores_.front().scan({});
  if (!reply) return reply.error();
  engine_.note_time(*reply);
  return Unit{};
}

void DatabaseEngine::start() {
  for (auto& loop : loops_) loop->start();
  listener_.start("listener", [this] { listen(); });
}

void DatabaseEngine::note_step() {
  { MutexLock lock(mutex_); }  // drained_by() has not checked yet, or waits: it misses no notification
  stepped_.notify_all();
}

bool DatabaseEngine::drained_by(MonoTime deadline) {
  MutexLock lock(mutex_);
  const std::chrono::steady_clock::time_point end(deadline.time_since_epoch());
  while (!engine_.is_drained() && stepped_.wait_until(mutex_, end)) {
  }
  return engine_.is_drained();
}

bool DatabaseEngine::stop(Duration grace, const std::function<void()>& abandon) {
  if (is_stopping_.exchange(true)) return true;
  listener_.request_stop();
  notifications_.interrupt();
  engine_.begin_drain();
  bool is_drained = drained_by(clock_.now() + grace);
  if (!is_drained) {
    abandon();
    is_drained = drained_by(clock_.now() + std::chrono::seconds(2));
  }
  // A claimer may have claimed after it saw no drain and before is_drained() saw its claim: the claimers end first,
  // then what they claimed is released.
  const auto claimers_end = loops_.end() - Engine::kStagesAfterClaim;
  for (auto loop = loops_.begin(); loop != claimers_end; ++loop) (*loop)->stop();
  is_drained = drained_by(clock_.now() + std::chrono::seconds(2)) && is_drained;
  for (auto loop = claimers_end; loop != loops_.end(); ++loop) (*loop)->stop();
  listener_.stop();
  return is_drained;
}

void DatabaseEngine::listen() {
  while (!listener_.is_stopping()) {
    auto heard = notifications_.wait(kListen);
    if (!heard) {
      engine_.set_listening(false);
      events_.failed("listener", heard.error());
      listener_.pause(kListenAgain);
      continue;
    }
    if (heard->cannot_listen) {
      spdlog::warn(
          "the database is reached through a pooler that shares sessions, so notifications do not arrive: jobs created "
          "on other nodes or by SQL wait for the next scan, up to a second");
      return;
    }
    engine_.set_listening(true);
    if (heard->is_reconnected) engine_.request_sweep();
    if (heard->is_types_changed || heard->is_reconnected) on_types_changed_();
    if (heard->is_members_changed || heard->is_reconnected) on_members_changed_();
    if (heard->is_outbox_filled) config_.on_outbox();
    for (const Candidate& job : heard->due) engine_.hint(job);
  }
}

bool DatabaseEngine::owns(Shard shard) const {
  return std::ranges::binary_search(*engine_.shared().shards.get(), shard);
}

std::pair<const char*, Duration> DatabaseEngine::most_stuck() const {
  std::pair<const char*, Duration> worst{"", Duration(0)};
  const MonoTime now = clock_.now();
  for (const auto& loop : loops_) {
    const Duration stuck = loop->stuck_for(now);
    if (stuck > worst.second) worst = {loop->name(), stuck};
  }
  return worst;
}

}  // namespace tocsin
