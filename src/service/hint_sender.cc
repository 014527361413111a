#include "service/hint_sender.h"

#include <algorithm>
#include <span>

#include "postgres/pg_listener.h"

namespace tocsin {

HintSender::HintSender(const SessionConfig& session, std::function<void(const Error&)> on_failure)
    : session_(session), on_failure_(std::move(on_failure)) {
  worker_.start("hint sender", [this] { run(); });
}

void HintSender::push(const Candidate& job) {
  {
    MutexLock lock(mutex_);
    if (jobs_.size() >= kCapacity) return;
    jobs_.push_back(job);
  }
  worker_.wake();
}

void HintSender::run() {
  for (bool is_last = false; !is_last;) {
    is_last = !worker_.wait();
    std::vector<Candidate> jobs;
    {
      MutexLock lock(mutex_);
      jobs.swap(jobs_);
    }
    if (!jobs.empty()) send(jobs);
  }
}

void HintSender::send(const std::vector<Candidate>& jobs) {
  const auto sent = session_.transact([&](pqxx::work& tx) {
    for (std::span<const Candidate> rest(jobs); !rest.empty();) {
      const auto some = rest.first(std::min(rest.size(), kMaxDuePerNotify));
      tx.exec_params("SELECT pg_notify('tocsin_due', $1)", due_payload(some));
      rest = rest.subspan(some.size());
    }
  });
  if (!sent) on_failure_(sent.error());
}

}  // namespace tocsin
