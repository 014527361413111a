// Callers that keep creating jobs while a test does something to the node or its database.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/rest.h"

namespace tocsin {

// Thread: owner only.
class Load {
 public:
  // Each caller creates one job after the other, due `delay_ms` later; what is refused is not tried again.
  Load(int port, const std::string& biz_type, int callers, int delay_ms);
  ~Load() { stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void stop();
  std::size_t acknowledged() const;
  std::set<std::string> ids() const;  // of the acknowledged
  std::size_t refused() const { return refused_; }

 private:
  void create(int port, const std::string& biz_type, int caller, int delay_ms);

  mutable std::mutex mutex_;
  std::set<std::string> ids_;
  std::atomic<std::size_t> refused_{0};
  std::atomic<bool> is_stopping_{false};
  std::vector<std::thread> callers_;
};

}  // namespace tocsin
