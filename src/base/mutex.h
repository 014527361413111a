// Mutex, MutexLock and CondVar: the standard ones with annotations for Clang's -Wthread-safety, used by all code that
// locks. A data member names the mutex that guards it, a function the mutex that its caller must hold, and Clang
// refuses code that does not hold it. Other compilers ignore the annotations.
//
//   Mutex mutex_;
//   CondVar changed_;
//   std::deque<Item> items_ TOCSIN_GUARDED_BY(mutex_);
//
//   MutexLock lock(mutex_);
//   while (items_.empty()) changed_.wait(mutex_);   // a loop: Clang cannot see that a predicate lambda holds the lock
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define TOCSIN_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TOCSIN_THREAD_ANNOTATION(x)
#endif
#define TOCSIN_GUARDED_BY(mutex) TOCSIN_THREAD_ANNOTATION(guarded_by(mutex))
#define TOCSIN_REQUIRES(mutex) TOCSIN_THREAD_ANNOTATION(requires_capability(mutex))
// Turns the check off for a function whose lock Clang cannot follow; a comment beside it says which lock that is.
#define TOCSIN_UNCHECKED TOCSIN_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace tocsin {

// Thread: any.
class TOCSIN_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() TOCSIN_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() TOCSIN_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex while it exists; unlock() and lock() release and take it in between. Thread: the one that made it.
class TOCSIN_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TOCSIN_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() TOCSIN_THREAD_ANNOTATION(release_capability()) {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() TOCSIN_THREAD_ANNOTATION(acquire_capability()) {
    mutex_.lock();
    is_held_ = true;
  }
  void unlock() TOCSIN_THREAD_ANNOTATION(release_capability()) {
    is_held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool is_held_ = true;
};

// A wait releases the mutex, which the caller holds, and takes it again before it returns. It may end without a
// notification: wait in a loop. Thread: any.
class CondVar {
 public:
  void wait(Mutex& mutex) TOCSIN_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // False: `end` has passed without a notification.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point end) TOCSIN_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool is_in_time = changed_.wait_until(lock, end) == std::cv_status::no_timeout;
    lock.release();
    return is_in_time;
  }
  // False: `length` has passed without a notification.
  bool wait_for(Mutex& mutex, std::chrono::microseconds length) TOCSIN_REQUIRES(mutex) {
    return wait_until(mutex, std::chrono::steady_clock::now() + length);
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace tocsin
