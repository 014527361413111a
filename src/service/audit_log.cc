#include "service/audit_log.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "base/thread_guard.h"

namespace tocsin {
namespace {

constexpr std::size_t kMostEntries = 10'000;
constexpr std::size_t kMostCounts = 1'000;
constexpr std::size_t kEntriesPerFlush = 1'000;
constexpr Duration kCountInterval = std::chrono::minutes(1);
constexpr std::chrono::seconds kFlushInterval{1};

}  // namespace

AuditLog::AuditLog(const SessionConfig& session, const Clock& clock) : clock_(clock), store_(session) {}

void AuditLog::start() {
  thread_ = std::thread([this] { or_abort("audit", [this] { run(); }); });
}

void AuditLog::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  woken_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// Without tokens callers have no names: nothing is recorded.
void AuditLog::record(AuditEntry entry) {
  if (entry.kind == Audit::none || entry.caller.name.empty()) return;
  std::lock_guard lock(mutex_);
  // What an administrator does to one job is a person's work, and rare.
  const bool is_of_a_person = entry.caller.role == "admin" && !entry.target.empty();
  if (entry.kind == Audit::counted && !is_of_a_person) {
    Key key{entry.caller.name, entry.caller.role, entry.caller.address, entry.action};
    if (counts_.size() >= kMostCounts && !counts_.contains(key)) {
      ++lost_;
      return;
    }
    if (counts_.empty()) {
      counted_since_ = clock_.now();
      woken_.notify_one();
    }
    counts_[std::move(key)] += entry.changed.value_or(1);
    return;
  }
  if (entries_.size() >= kMostEntries) {
    ++lost_;
    return;
  }
  entries_.push_back(std::move(entry));
  woken_.notify_one();
}

bool AuditLog::is_flush_due(MonoTime now) const {
  return !entries_.empty() || (!counts_.empty() && (is_stopping_ || now - counted_since_ >= kCountInterval));
}

void AuditLog::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (entries_.empty() && counts_.empty() && !is_stopping_)
      woken_.wait(lock, [this] { return is_stopping_ || !entries_.empty() || !counts_.empty(); });
    // Entries that come together share a statement.
    if (!is_stopping_) woken_.wait_for(lock, kFlushInterval, [this] { return is_stopping_; });
    if (is_flush_due(clock_.now())) flush(lock);
    if (is_stopping_) return;
  }
}

void AuditLog::flush(std::unique_lock<std::mutex>& lock) {
  std::vector<AuditEntry> batch;
  while (!entries_.empty() && batch.size() < kEntriesPerFlush) {
    batch.push_back(std::move(entries_.front()));
    entries_.pop_front();
  }
  const std::size_t n_each = batch.size();
  const bool has_counts = is_stopping_ || clock_.now() - counted_since_ >= kCountInterval;
  auto counts = has_counts ? std::exchange(counts_, {}) : std::map<Key, std::int64_t>{};
  lock.unlock();
  for (const auto& [key, n] : counts) {
    const auto& [name, role, address, action] = key;
    AuditEntry entry{Audit::counted, {name, role, address}, action, {}, {}, {}, n, {}};
    batch.push_back(std::move(entry));
  }
  const Status done = store_.append(batch);
  lock.lock();
  if (done) return;
  // An append in doubt counts as written: the log may lack a row, but never has one twice.
  if (done.error().code == ErrorCode::in_doubt) return;
  for (auto& [key, n] : counts) counts_[key] += n;
  for (std::size_t i = n_each; i > 0; --i) entries_.push_front(std::move(batch[i - 1]));
  spdlog::warn("the audit log waits: {}", done.error().message);
}

}  // namespace tocsin
