#include "service/hint_sender.h"

#include <algorithm>
#include <span>

#include "base/thread_guard.h"
#include "postgres/pg_listener.h"

namespace tocsin {

HintSender::HintSender(const SessionConfig& session, std::function<void(const Error&)> on_failure)
    : session_(session), on_failure_(std::move(on_failure)) {
  thread_ = std::thread([this] { or_abort("hint sender", [this] { run(); }); });
}

void HintSender::push(const Candidate& job) {
  {
    std::lock_guard lock(mutex_);
    if (jobs_.size() >= kCapacity) return;
    jobs_.push_back(job);
  }
  ready_.notify_one();
}

void HintSender::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  ready_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void HintSender::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::vector<Candidate> batch = std::exchange(jobs_, {});
    lock.unlock();
    const auto sent = session_.write<Unit>([&](pqxx::connection& connection) {
      pqxx::work tx(connection);
      for (std::span<const Candidate> rest(batch); !rest.empty();) {
        const auto some = rest.first(std::min(rest.size(), kMaxDuePerNotify));
        tx.exec_params("SELECT pg_notify('tocsin_due', $1)", due_payload(some));
        rest = rest.subspan(some.size());
      }
      tx.commit();
      return Unit{};
    });
    if (!sent) on_failure_(sent.error());
    lock.lock();
  }
}

}  // namespace tocsin
