// Fifty browsers that show the overview: their requests, at the intervals of the page, over a connection each.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/rest_client.h"

namespace tocsin::bench {

// Thread: owner only.
class PageLoad {
 public:
  // Reads every page of the reports once, for the cursors that browsers send.
  explicit PageLoad(RestClient& rest);
  ~PageLoad() { stop(); }

  void start(int port);
  std::int64_t stop();  // how many requests have been answered

 private:
  struct Request {
    std::chrono::milliseconds at;  // within a cycle
    std::string text;
  };
  void add(const std::string& path, int every);
  void add_pages(RestClient& rest, const std::string& path, int every, int most);

  std::vector<Request> cycle_;  // of all browsers, in the order of time
  std::atomic<bool> is_stopping_{false};
  std::int64_t answered_ = 0;
  std::thread thread_;
};

}  // namespace tocsin::bench
