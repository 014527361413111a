#include "service/audit_log.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>
#include <vector>

namespace tocsin {
namespace {

constexpr std::size_t kMostEntries = 10'000;
constexpr std::size_t kMostCounts = 1'000;
constexpr std::size_t kEntriesPerFlush = 1'000;
constexpr Duration kCountInterval = std::chrono::minutes(1);
constexpr std::chrono::seconds kFlushInterval{1};

}  // namespace

AuditLog::AuditLog(std::unique_ptr<AuditStore> store, const Clock& clock) : clock_(clock), store_(std::move(store)) {}

void AuditLog::start() {
  worker_.start("audit", [this] { run(); });
}

// Without tokens callers have no names: nothing is recorded.
void AuditLog::record(AuditEntry entry) {
  if (entry.kind == Audit::none || entry.caller.name.empty()) return;
  MutexLock lock(mutex_);
  // A call of an admin on one job is usually made by a person, and rare. So is a call that changes many jobs.
  const bool is_rare = (entry.caller.role == "admin" && !entry.target.empty()) || !entry.filter_json.empty();
  if (entry.kind == Audit::counted && !is_rare) {
    Key key{entry.caller.name, entry.caller.role, entry.caller.address, entry.action};
    if (counts_.size() >= kMostCounts && !counts_.contains(key)) {
      ++lost_;
      return;
    }
    if (counts_.empty()) {
      counted_since_ = clock_.now();
      worker_.wake();
    }
    counts_[std::move(key)] += entry.changed.value_or(1);
    return;
  }
  if (entries_.size() >= kMostEntries) {
    ++lost_;
    return;
  }
  entries_.push_back(std::move(entry));
  worker_.wake();
}

bool AuditLog::is_empty() const {
  MutexLock lock(mutex_);
  return entries_.empty() && counts_.empty();
}

void AuditLog::run() {
  for (bool is_last = false; !is_last;) {
    // Entries that arrive together share a statement.
    is_last = (is_empty() && !worker_.wait()) || !worker_.pause(kFlushInterval);
    while (flush(is_last)) {
    }
  }
}

bool AuditLog::flush(bool is_last) {
  std::vector<AuditEntry> batch;
  std::map<Key, std::int64_t> counts;
  bool has_more = false;
  {
    MutexLock lock(mutex_);
    while (!entries_.empty() && batch.size() < kEntriesPerFlush) {
      batch.push_back(std::move(entries_.front()));
      entries_.pop_front();
    }
    has_more = !entries_.empty();
    if (is_last || clock_.now() - counted_since_ >= kCountInterval) counts.swap(counts_);
  }
  if (batch.empty() && counts.empty()) return false;
  const std::size_t n_each = batch.size();
  for (const auto& [key, n] : counts) {
    const auto& [name, role, address, action] = key;
    AuditEntry entry{Audit::counted, {name, role, address}, action, {}, {}, {}, n, {}};
    batch.push_back(std::move(entry));
  }
  const Status done = store_->append(batch);
  if (done) return has_more;
  // Not repeated: the log may lack a row, but never has one twice.
  if (done.error().code == ErrorCode::in_doubt) {
    lost_ += static_cast<std::int64_t>(batch.size());
    spdlog::warn("the audit log may lack {} entries: {}", batch.size(), done.error().message);
    return has_more;
  }
  {
    MutexLock lock(mutex_);
    for (auto& [key, n] : counts) counts_[key] += n;
    for (std::size_t i = n_each; i > 0; --i) entries_.push_front(std::move(batch[i - 1]));
  }
  spdlog::warn("the audit log waits: {}", done.error().message);
  return false;
}

}  // namespace tocsin
