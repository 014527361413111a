#include "maintenance/outage_watch.h"

#include <spdlog/spdlog.h>

#include "postgres/session.h"

namespace tocsin {

void OutageWatch::answered() {
  MutexLock lock(mutex_);
  const MonoTime now = clock_.now();
  const Duration silence = now - answered_at_;
  const bool has_answered = answered_at_ != MonoTime();
  answered_at_ = now;
  const bool was_outage = std::exchange(is_outage_, false);
  lock.unlock();
  if (has_answered && (was_outage || silence >= kSilence))
    spdlog::info("database {}: answers again, after {} s", title_,
                 std::chrono::duration_cast<std::chrono::seconds>(silence).count());
  else if (was_outage)
    spdlog::info("database {}: answers", title_);
}

void OutageWatch::failed(const Error& error) {
  if (error.code != ErrorCode::unavailable && error.code != ErrorCode::in_doubt) return;
  MutexLock lock(mutex_);
  if (is_outage_ || (error.field != kUnreachable && clock_.now() - answered_at_ < kSilence)) return;
  is_outage_ = true;
  lock.unlock();
  spdlog::error("database {}: does not answer: {}. Its jobs wait for it", title_, error.message);
}

bool OutageWatch::is_answering() const {
  MutexLock lock(mutex_);
  return answered_at_ != MonoTime() && !is_outage_ && clock_.now() - answered_at_ < kSilence;
}

bool OutageWatch::wants_check() {
  MutexLock lock(mutex_);
  const MonoTime now = clock_.now();
  if (is_outage_ || now - wanted_at_ < std::chrono::seconds(1)) return false;
  wanted_at_ = now;
  return true;
}

}  // namespace tocsin
