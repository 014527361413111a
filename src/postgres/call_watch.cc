#include "postgres/call_watch.h"

#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace tocsin {
namespace {

constexpr std::chrono::milliseconds kLook(500);

// One thread for all calls of the process; it starts with the first call and ends with the process.
class CallWatch {
 public:
  CallWatch() : thread_([this] { run(); }) {}
  ~CallWatch() {
    {
      std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  std::list<WatchedCall::Entry>::iterator add(WatchedCall::Entry entry) {
    std::lock_guard lock(mutex_);
    return calls_.insert(calls_.end(), entry);
  }
  void remove(std::list<WatchedCall::Entry>::iterator entry) {
    std::lock_guard lock(mutex_);
    calls_.erase(entry);
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLook, [this] { return is_over_; })) {
      const auto now = std::chrono::steady_clock::now();
      for (WatchedCall::Entry& call : calls_) {
        if (call.deadline > now) continue;
        ::shutdown(call.socket, SHUT_RDWR);
        call.deadline = std::chrono::steady_clock::time_point::max();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<WatchedCall::Entry> calls_;
  bool is_over_ = false;
  std::thread thread_;
};

CallWatch& watch() {
  static CallWatch instance;
  return instance;
}

}  // namespace

WatchedCall::WatchedCall(int socket, std::chrono::milliseconds patience)
    : entry_(watch().add({socket, std::chrono::steady_clock::now() + patience})) {}

WatchedCall::~WatchedCall() { watch().remove(entry_); }

}  // namespace tocsin
