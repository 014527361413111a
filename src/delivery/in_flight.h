// InFlight: the attempts that handlers of `cpp` and `sql` have given to worker threads, which may outlive the node. It
// calls the `finish` of each attempt exactly once, in time even if no thread begins the attempt. Owned by CppRunner
// (cpp_handler.h) and SqlKind (sql_handler.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "base/worker_thread.h"
#include "tocsin/clock.h"
#include "tocsin/handler.h"

namespace tocsin {

// An attempt ends by end(), by close(), or because no thread has begun it by `begin_by`: then as not started, so that
// its job can be released before its lease ends. `finish` is called without a lock held: on the thread that calls end()
// or close(), or on this object's thread. REQUIRES: `clock` outlives the object. Thread: close and destructor owner
// only; the rest any.
class InFlight {
 public:
  explicit InFlight(const Clock& clock) : clock_(clock) {}
  ~InFlight() { close(); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  // Takes `finish`, and returns a number for the attempt. 0: closed; `finish` is unchanged.
  std::uint64_t add(Handler::Finish& finish, MonoTime begin_by);
  // Call before the attempt runs. False: the attempt has ended as not started, and must not run.
  bool begin(std::uint64_t attempt);
  // Undoes begin() for an attempt whose batch failed: the attempt waits for a thread again. Ignored if it has ended.
  void wait_again(std::uint64_t attempt, MonoTime begin_by);
  // Ends the attempt with this outcome. Ignored if it has ended.
  void end(std::uint64_t attempt, Outcome outcome);
  // Ends all attempts: those that have begun as a retry "shutting down", the others as not started. add() refuses later
  // ones. May be called again.
  void close();

 private:
  struct Attempt {
    Handler::Finish finish;
    MonoTime begin_by{};
    bool has_begun = false;
  };
  using Attempts = std::unordered_map<std::uint64_t, Attempt>;

  void watch(std::uint64_t number, MonoTime begin_by) TOCSIN_REQUIRES(mutex_);
  Handler::Finish take(Attempts::iterator attempt) TOCSIN_REQUIRES(mutex_);
  // Ends attempts that have not begun by their begin_by. Returns when to look again; nullopt: no attempt waits.
  std::optional<Duration> end_late();

  const Clock& clock_;
  Mutex mutex_;
  Attempts attempts_ TOCSIN_GUARDED_BY(mutex_);
  std::set<std::pair<MonoTime, std::uint64_t>> waiting_ TOCSIN_GUARDED_BY(mutex_);  // not begun, by begin_by
  std::uint64_t last_ TOCSIN_GUARDED_BY(mutex_) = 0;
  bool is_closed_ TOCSIN_GUARDED_BY(mutex_) = false;
  bool is_watched_ TOCSIN_GUARDED_BY(mutex_) = false;
  WorkerThread watch_;  // calls end_late(), from the first attempt on
};

}  // namespace tocsin
