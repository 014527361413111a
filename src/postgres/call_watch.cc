#include "postgres/call_watch.h"

#include <sys/socket.h>

#include "base/mutex.h"
#include "base/worker_thread.h"

namespace tocsin {
namespace {

constexpr std::chrono::milliseconds kLook(500);

// One thread for all calls of the process, which starts with the first call. It is never stopped or destroyed: calls
// that overran the stop of their threads may return while the process exits.
class CallWatch {
 public:
  CallWatch() {
    worker_.start("call watch", [this] {
      while (worker_.wait_for(kLook)) end_overdue();
    });
  }

  std::list<WatchedCall::Entry>::iterator add(WatchedCall::Entry entry) {
    MutexLock lock(mutex_);
    return calls_.insert(calls_.end(), entry);
  }
  void remove(std::list<WatchedCall::Entry>::iterator entry) {
    MutexLock lock(mutex_);
    calls_.erase(entry);
  }

 private:
  void end_overdue() {
    MutexLock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    for (WatchedCall::Entry& call : calls_) {
      if (call.deadline > now) continue;
      ::shutdown(call.socket, SHUT_RDWR);
      call.deadline = std::chrono::steady_clock::time_point::max();
    }
  }

  Mutex mutex_;
  std::list<WatchedCall::Entry> calls_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

CallWatch& watch() {
  static CallWatch& instance = *new CallWatch;
  return instance;
}

}  // namespace

WatchedCall::WatchedCall(int socket, std::chrono::milliseconds patience)
    : entry_(watch().add({socket, std::chrono::steady_clock::now() + patience})) {}

WatchedCall::~WatchedCall() { watch().remove(entry_); }

}  // namespace tocsin
