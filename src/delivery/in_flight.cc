#include "delivery/in_flight.h"

#include <algorithm>
#include <system_error>

namespace tocsin {
namespace {

constexpr Duration kLongestLook = std::chrono::milliseconds(50);  // so that a jump of the clock is noticed
constexpr Duration kPause = std::chrono::milliseconds(250);       // before a job that found no thread is claimed again

}  // namespace

std::uint64_t InFlight::add(Handler::Finish& finish, MonoTime begin_by) {
  MutexLock lock(mutex_);
  if (is_closed_) return 0;
  attempts_.emplace(++last_, Attempt{std::move(finish)});
  watch(last_, begin_by);
  return last_;
}

void InFlight::watch(std::uint64_t number, MonoTime begin_by) {
  attempts_.at(number).begin_by = begin_by;
  waiting_.emplace(begin_by, number);
  if (is_watched_) {
    if (waiting_.begin()->second == number) watch_.wake();
    return;
  }
  try {
    watch_.start("late starts", [this] {
      while (!watch_.is_stopping()) {
        const auto next = end_late();
        static_cast<void>(next ? watch_.wait_for(*next) : watch_.wait());
      }
    });
    is_watched_ = true;
  } catch (const std::system_error&) {  // the machine has no more threads: the next attempt tries again
  }
}

std::optional<Duration> InFlight::end_late() {
  MutexLock lock(mutex_);
  while (!waiting_.empty()) {
    const auto [begin_by, number] = *waiting_.begin();
    if (const MonoTime now = clock_.now(); now < begin_by) return std::min(begin_by - now, kLongestLook);
    const auto finish = take(attempts_.find(number));
    lock.unlock();
    finish(Outcome::not_started(kPause));
    lock.lock();
  }
  return {};
}

bool InFlight::begin(std::uint64_t attempt) {
  MutexLock lock(mutex_);
  const auto it = attempts_.find(attempt);
  if (it == attempts_.end()) return false;
  waiting_.erase({it->second.begin_by, attempt});
  it->second.has_begun = true;
  return true;
}

void InFlight::wait_again(std::uint64_t attempt, MonoTime begin_by) {
  MutexLock lock(mutex_);
  const auto it = attempts_.find(attempt);
  if (it == attempts_.end()) return;  // ended by close()
  it->second.has_begun = false;
  watch(attempt, begin_by);
}

Handler::Finish InFlight::take(Attempts::iterator attempt) {
  waiting_.erase({attempt->second.begin_by, attempt->first});
  Handler::Finish finish = std::move(attempt->second.finish);
  attempts_.erase(attempt);
  return finish;
}

void InFlight::end(std::uint64_t attempt, Outcome outcome) {
  Handler::Finish finish;
  {
    MutexLock lock(mutex_);
    const auto it = attempts_.find(attempt);
    if (it == attempts_.end()) return;  // it has ended before
    finish = take(it);
  }
  finish(std::move(outcome));
}

void InFlight::close() {
  Attempts left;
  {
    MutexLock lock(mutex_);
    is_closed_ = true;
    left.swap(attempts_);
    waiting_.clear();
  }
  watch_.stop();
  for (const auto& [number, attempt] : left)
    attempt.finish(attempt.has_begun ? Outcome::retry("shutting down") : Outcome::not_started(Duration(0)));
}

}  // namespace tocsin
