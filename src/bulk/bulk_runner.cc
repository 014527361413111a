#include "bulk/bulk_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tocsin {
namespace {

constexpr Duration kRetryPause = std::chrono::seconds(1);
constexpr Duration kKeepInterval = std::chrono::seconds(1);  // how late a stop may be noticed
constexpr double kBatchesPerSecond = 5;                      // of a bulk with a rate
constexpr Duration kCloseTime = std::chrono::seconds(30);    // how long the end of a bulk waits for a database

}  // namespace

BulkRunner::BulkRunner(NodeId node, std::vector<BulkDatabase> databases, Hooks hooks)
    : node_(node), databases_(std::move(databases)), hooks_(std::move(hooks)) {}

bool BulkRunner::take(Bulk bulk) {
  if (bulk_) return false;
  bulk_ = std::move(bulk);
  database_ = 0;
  progress_.clear();
  next_batch_ = MonoTime{};
  extended_at_.reset();
  closing_since_.reset();
  is_loaded_ = false;
  return true;
}

MonoTime BulkRunner::step(MonoTime now) {
  if (!bulk_) return look_for_bulk(now);
  if ((!extended_at_ || now - *extended_at_ >= kKeepInterval) && !extend_lease(now))
    return bulk_ ? retry_later(now) : now;
  if (bulk_->is_stop_requested) return close_databases(now) && finish(BulkState::stopped, "") ? now : retry_later(now);
  if (!is_loaded_ && !load_progress()) return retry_later(now);
  if (database_ == databases_.size()) return finish(BulkState::done, "") ? now : retry_later(now);
  if (now < next_batch_) return std::min(next_batch_, *extended_at_ + kKeepInterval);
  return run_batch(now);
}

// A node that has nothing to run asks every 5 seconds whether another node left a bulk behind: one statement that reads
// the index of running bulks, which is empty most of the time.
MonoTime BulkRunner::look_for_bulk(MonoTime now) {
  if (next_look_ && now < *next_look_) return *next_look_;
  next_look_ = now + kLookInterval;
  auto taken_over = databases_.front().store->take_over(node_, kLease);
  if (!taken_over || !*taken_over) return *next_look_;
  take(std::move(**taken_over));
  return now;
}

// The numbers of a bulk that was taken over include what its earlier node changed.
bool BulkRunner::load_progress() {
  for (const BulkDatabase& database : databases_) {
    const auto part = database.store->progress(bulk_->bulk_id);
    if (!part) return false;
    progress_[database.database_id] = part->changed;
  }
  is_loaded_ = true;
  return true;
}

MonoTime BulkRunner::retry_later(MonoTime now) const { return now + kRetryPause; }

// Returns false when the work cannot continue now: the lease is lost (there is no bulk any more), or the control
// database did not answer.
bool BulkRunner::extend_lease(MonoTime now) {
  auto kept = databases_.front().store->keep(bulk_->bulk_id, node_, changed(), kLease);
  if (!kept) return false;
  if (!*kept) {
    bulk_.reset();
    next_look_ = now + kLookInterval;
    return false;
  }
  bulk_->is_stop_requested = (*kept)->is_stop_requested;
  extended_at_ = now;
  return true;
}

int BulkRunner::batch_limit() const {
  const auto& rate = bulk_->request.rate_per_s;
  return rate ? std::clamp(static_cast<int>(*rate / kBatchesPerSecond), 1, kBatch) : kBatch;
}

std::int64_t BulkRunner::changed() const {
  const auto known = std::accumulate(progress_.begin(), progress_.end(), std::int64_t{0},
                                     [](std::int64_t sum, const auto& part) { return sum + part.second; });
  return std::max(known, bulk_->changed);  // as an earlier node stored it
}

MonoTime BulkRunner::run_batch(MonoTime now) {
  const BulkDatabase& database = databases_[database_];
  const auto batch = database.store->run_batch(*bulk_, batch_limit());
  if (!batch) {
    hooks_.on_failure(database.database_id, batch.error());
    // The values of a bulk were checked when it was accepted: what the database refuses now it refuses for ever.
    if (batch.error().code == ErrorCode::invalid && finish(BulkState::failed, batch.error().message)) return now;
    return retry_later(now);
  }
  if (batch->refusal) hooks_.on_failure(database.database_id, *batch->refusal);
  for (const Candidate& job : batch->due_soon) hooks_.on_due_soon(job);
  const std::int64_t before = std::exchange(progress_[database.database_id], batch->changed);
  if (const auto& rate = bulk_->request.rate_per_s) {
    const double seconds = static_cast<double>(batch->changed - before) / *rate;
    next_batch_ = std::max(now, next_batch_) + Duration(static_cast<Duration::rep>(seconds * 1e6));
  }
  if (batch->is_done) ++database_;
  return now;
}

// A node that had the lease before may still send a batch. It cannot while its database does not answer this one for
// longer than any batch takes: a bulk that was stopped does not wait for that database.
bool BulkRunner::close_databases(MonoTime now) {
  bool are_closed = true;
  for (const BulkDatabase& database : databases_) {
    const auto changed = database.store->close(bulk_->bulk_id);
    if (changed) {
      progress_[database.database_id] = *changed;
    } else {
      hooks_.on_failure(database.database_id, changed.error());
      are_closed = false;
    }
  }
  if (!closing_since_) closing_since_ = now;
  return are_closed || now - *closing_since_ >= kCloseTime;
}

bool BulkRunner::finish(BulkState state, std::string error) {
  Bulk ended = *bulk_;
  ended.state = state;
  ended.changed = changed();
  ended.error = std::move(error);
  const auto is_finished = databases_.front().store->finish(ended, node_);
  if (!is_finished) return false;
  bulk_.reset();  // also when the lease was lost: the other node finishes it
  next_look_.reset();
  return true;
}

Result<std::optional<Bulk>> stop_bulk(std::span<const BulkDatabase> databases, NodeId node, std::int64_t bulk_id) {
  BulkStore& control = *databases.front().store;
  auto asked = control.request_stop(bulk_id);
  if (!asked || !*asked || (*asked)->state != BulkState::running) return asked;
  auto idle = control.take_over(bulk_id, node, BulkRunner::kLease);
  if (!idle || !*idle) return asked;
  Bulk ended = std::move(**idle);
  ended.state = BulkState::stopped;
  ended.changed = 0;
  for (const BulkDatabase& database : databases) {
    const auto changed = database.store->close(bulk_id);
    if (!changed) return asked;
    ended.changed += *changed;
  }
  if (const auto is_ended = control.finish(ended, node); !is_ended) return asked;
  return control.find(bulk_id);
}

}  // namespace tocsin
