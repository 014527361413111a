// Where the node under test delivers: writes down which job came, and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "bench_core/receiver.h"

namespace tocsin::replay {

struct Delivery {
  std::string biz_id;
  std::int64_t job_id = 0;
  int attempt = 0;
  std::chrono::sys_time<std::chrono::microseconds> at{};  // when its last byte was read
};

// Thread: any.
class Receiver {
 public:
  Receiver();

  std::string url() const { return receiver_.url(); }
  std::int64_t count() const { return count_; }
  std::vector<Delivery> deliveries() const;

 private:
  bool take(const bench::WebhookRequest& request);

  mutable Mutex mutex_;
  std::vector<Delivery> deliveries_ TOCSIN_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> count_{0};
  bench::Receiver receiver_;
};

}  // namespace tocsin::replay
