#include "integration/load.h"

namespace tocsin {

Load::Load(int port, const std::string& biz_type, int callers, int delay_ms) {
  for (int caller = 0; caller < callers; ++caller) {
    callers_.emplace_back([=, this] { create(port, biz_type, caller, delay_ms); });
  }
}

void Load::stop() {
  is_stopping_ = true;
  for (std::thread& caller : callers_) {
    if (caller.joinable()) caller.join();
  }
}

void Load::create(int port, const std::string& biz_type, int caller, int delay_ms) {
  Rest rest(port);
  for (int i = 0; !is_stopping_; ++i) {
    const std::string biz_id = std::to_string(caller) + "-" + std::to_string(i);
    const Reply reply = rest.post("/v1/jobs", {{"biz_type", biz_type}, {"biz_id", biz_id}, {"delay_ms", delay_ms}});
    if (reply.status != 201) {
      ++refused_;
      continue;
    }
    std::lock_guard lock(mutex_);
    ids_.insert(reply.body["job_id"].get<std::string>());
  }
}

std::size_t Load::acknowledged() const {
  std::lock_guard lock(mutex_);
  return ids_.size();
}

std::set<std::string> Load::ids() const {
  std::lock_guard lock(mutex_);
  return ids_;
}

}  // namespace tocsin
