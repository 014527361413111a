// PageLoad: the requests of fifty browsers that show the dashboard's overview, at the intervals of the page, each on a
// connection of its own.
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
  // Reads all pages of the reports once, to get the cursors that browsers send.
  explicit PageLoad(RestClient& rest);
  ~PageLoad() { stop(); }

  void start(int port);
  std::int64_t stop();  // returns the number of answered requests

 private:
  struct Request {
    std::chrono::milliseconds at;  // since the begin of the cycle
    std::string text;
  };
  void add(const std::string& path, int every);
  void add_pages(RestClient& rest, const std::string& path, int every, int most);

  std::vector<Request> cycle_;  // the requests of all browsers, in order of time
  std::atomic<bool> is_stopping_{false};
  std::int64_t answered_ = 0;
  std::thread thread_;
};

}  // namespace tocsin::bench
