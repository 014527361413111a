// Sends hints: notifies other nodes (NOTIFY tocsin_due, as tocsin.create_job does) of jobs due soon in shards that they
// own. Hints that arrive during one notification share the next.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ports/job_store.h"
#include "postgres/session.h"

namespace tocsin {

// Thread: push any; the rest owner only.
class HintSender {
 public:
  HintSender(const SessionConfig& session, std::function<void(const Error&)> on_failure);
  ~HintSender() { stop(); }

  // Dropped when too many wait: the scan finds them.
  void push(const Candidate& job);
  void stop();

 private:
  static constexpr std::size_t kCapacity = 10'000;

  void run();

  Session session_;
  const std::function<void(const Error&)> on_failure_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Candidate> jobs_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tocsin
