#include "service/bulk_stage.h"

#include <utility>

namespace tocsin {

BulkStage::BulkStage(NodeId node, std::vector<BulkDatabase> databases, BulkRunner::Hooks hooks)
    : node_(node), databases_(std::move(databases)), runner_(node, databases_, std::move(hooks)) {}

bool BulkStage::post(Work work) {
  MutexLock lock(mutex_);
  if (is_closed_ || requests_.size() >= kMostRequests) return false;
  requests_.push_back(std::move(work));
  return true;
}

void BulkStage::close() {
  MutexLock lock(mutex_);
  is_closed_ = true;
}

void BulkStage::drop_requests() {
  std::deque<Work> unanswered;  // destroyed without the lock: the calls that they hold are answered then
  MutexLock lock(mutex_);
  unanswered.swap(requests_);
}

BulkStage::Work BulkStage::next_request() {
  MutexLock lock(mutex_);
  if (requests_.empty()) return {};
  Work work = std::move(requests_.front());
  requests_.pop_front();
  return work;
}

MonoTime BulkStage::step(MonoTime now) {
  const bool is_runners_turn = std::exchange(is_runners_turn_, false) && runner_due_ <= now;
  if (!is_runners_turn) {
    if (const Work work = next_request()) {
      const bool was_busy = runner_.is_busy();
      BulkAccess access{node_, databases_, runner_};
      work(access);
      if (runner_.is_busy() != was_busy) runner_due_ = now;
      is_runners_turn_ = true;
      return now;
    }
    if (now < runner_due_) return runner_due_;
  }
  runner_due_ = runner_.step(now);
  return is_runners_turn ? now : runner_due_;  // more requests may wait
}

}  // namespace tocsin
