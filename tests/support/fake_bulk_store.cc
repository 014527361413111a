#include "support/fake_bulk_store.h"

#include <algorithm>
#include <utility>

namespace tocsin {

Result<std::optional<std::string>> FakeBulkStore::placement() {
  if (fails) return failure();
  return is_frozen ? std::nullopt : std::optional(std::to_string(moves));
}

Result<std::optional<Bulk>> FakeBulkStore::start(const BulkRequest& request, std::int64_t matched, NodeId node,
                                                 Duration lease, const std::string& placement) {
  if (fails) return failure();
  if (is_frozen || placement != std::to_string(moves)) return std::optional<Bulk>{};
  Bulk bulk;
  bulk.bulk_id = static_cast<std::int64_t>(bulks_.size()) + 1;
  bulk.request = request;
  bulk.matched = matched;
  bulk.started_at = now;
  bulks_[bulk.bulk_id] = {bulk, node, now + lease};
  return std::optional(bulk);
}

Result<std::optional<Bulk>> FakeBulkStore::find(std::int64_t bulk_id) {
  if (fails) return failure();
  const auto it = bulks_.find(bulk_id);
  return it == bulks_.end() ? std::nullopt : std::optional(it->second.bulk);
}

Result<std::vector<Bulk>> FakeBulkStore::list(int limit) {
  if (fails) return failure();
  std::vector<Bulk> newest;
  for (auto it = bulks_.rbegin(); it != bulks_.rend() && newest.size() < static_cast<std::size_t>(limit); ++it)
    newest.push_back(it->second.bulk);
  return newest;
}

Result<std::optional<Bulk>> FakeBulkStore::request_stop(std::int64_t bulk_id) {
  if (fails) return failure();
  const auto it = bulks_.find(bulk_id);
  if (it != bulks_.end() && it->second.bulk.state == BulkState::running) it->second.bulk.is_stop_requested = true;
  return find(bulk_id);
}

Result<std::optional<Bulk>> FakeBulkStore::take_over(NodeId node, Duration lease) {
  if (fails) return failure();
  for (const auto& [id, stored] : bulks_)
    if (is_idle(stored)) return take_over(id, node, lease);
  return std::optional<Bulk>{};
}

Result<std::optional<Bulk>> FakeBulkStore::take_over(std::int64_t bulk_id, NodeId node, Duration lease) {
  if (fails) return failure();
  const auto it = bulks_.find(bulk_id);
  if (it == bulks_.end() || !is_idle(it->second)) return std::optional<Bulk>{};
  it->second.node = node;
  it->second.lease_until = now + lease;
  return std::optional(it->second.bulk);
}

Result<std::optional<Bulk>> FakeBulkStore::keep(std::int64_t bulk_id, NodeId node, std::int64_t changed,
                                                Duration lease) {
  if (fails) return failure();
  const auto it = bulks_.find(bulk_id);
  if (it == bulks_.end() || it->second.node != node || it->second.bulk.state != BulkState::running)
    return std::optional<Bulk>{};
  it->second.bulk.changed = changed;
  it->second.lease_until = now + lease;
  return std::optional(it->second.bulk);
}

Result<bool> FakeBulkStore::finish(const Bulk& bulk, NodeId node) {
  if (fails) return failure();
  const auto it = bulks_.find(bulk.bulk_id);
  if (it == bulks_.end() || it->second.node != node || it->second.bulk.state != BulkState::running) return false;
  it->second.bulk.state = bulk.state;
  it->second.bulk.changed = bulk.changed;
  it->second.bulk.error = bulk.error;
  it->second.bulk.finished_at = now;
  return true;
}

std::vector<Job> FakeBulkStore::matching(const BulkRequest& request) const {
  JobFilter filter;
  filter.biz_id = request.filter.biz_id;
  filter.type_id = request.filter.type_id;
  filter.status = status_changed_by(request.action);
  filter.from = request.filter.from;
  filter.to = request.filter.to;
  filter.limit = 1000;
  auto jobs = database_.list(filter);
  if (const auto& reason = request.filter.reason)
    std::erase_if(jobs,
                  [&](const Job& job) { return (job.errors.empty() ? "" : job.errors.back().message) != *reason; });
  std::ranges::sort(jobs, {}, &Job::job_id);
  return jobs;
}

std::vector<Job> FakeBulkStore::changed_by(const Bulk& bulk) const {
  auto jobs = matching(bulk.request);
  const bool is_retry = bulk.request.action == BulkAction::retry;
  std::erase_if(jobs, [&](const Job& job) { return (is_retry ? *job.finished_at : job.gmt_create) > bulk.started_at; });
  return jobs;
}

Result<std::int64_t> FakeBulkStore::count(const BulkRequest& request) {
  if (fails) return failure();
  if (moves_while_counting) ++moves;
  return static_cast<std::int64_t>(matching(request).size());
}

Result<BulkBatch> FakeBulkStore::progress(std::int64_t bulk_id) {
  if (fails) return failure();
  return progress_[bulk_id].batch;
}

Result<std::int64_t> FakeBulkStore::close(std::int64_t bulk_id) {
  if (fails) return failure();
  progress_[bulk_id].batch.is_done = true;
  return progress_[bulk_id].batch.changed;
}

bool FakeBulkStore::change(const Bulk& bulk, JobId job) {
  switch (bulk.request.action) {
    case BulkAction::cancel: {
      const auto reply = database_.cancel({job}, now);
      return reply && reply->front().kind == CancelReply::Kind::cancelled;
    }
    case BulkAction::reschedule: {
      const WallTime at = bulk.request.action_time.value_or(bulk.started_at + bulk.request.delay.value_or(Duration(0)));
      const auto reply = database_.reschedule(job, {at, {}}, now);
      return reply && reply->kind == ChangeReply::Kind::changed;
    }
    case BulkAction::run: {
      const auto reply = database_.run_now(job, now);
      return reply && reply->kind == ChangeReply::Kind::changed;
    }
    case BulkAction::retry: {
      const auto reply = database_.retry(job, now);
      return reply && reply->kind == ChangeReply::Kind::changed;
    }
  }
  return false;
}

Result<BulkBatch> FakeBulkStore::run_batch(const Bulk& bulk, int limit) {
  if (fails) return failure();
  Progress& progress = progress_[bulk.bulk_id];
  progress.batch.due_soon.clear();
  progress.batch.refusal.reset();
  if (progress.batch.is_done) return progress.batch;
  // A dead job whose id a live job has gets a fresh one.
  if (bulk.request.action == BulkAction::retry)
    for (const Job& job : changed_by(bulk))
      if (database_.find(job.job_id)->status != JobStatus::dead) change(bulk, job.job_id);
  int n = 0;
  for (const Job& job : changed_by(bulk)) {
    if (job.job_id <= progress.last) continue;
    if (n++ == limit) return progress.batch;
    progress.last = job.job_id;
    if (database_.refuses(job.job_id)) progress.batch.refusal = database_.refusal(job.job_id);
    if (database_.refuses(job.job_id) || database_.is_locked(job.job_id)) {
      progress.locked.push_back(job.job_id);
    } else if (change(bulk, job.job_id)) {
      ++progress.batch.changed;
    }
  }
  // A second visit, once; in a batch of its own.
  progress.batch.is_done = progress.locked.empty();
  if (n > 0) return progress.batch;
  const auto jobs = changed_by(bulk);
  for (const JobId job : std::exchange(progress.locked, {})) {
    const bool still_matches = std::ranges::binary_search(jobs, job, {}, &Job::job_id);
    if (database_.refuses(job)) progress.batch.refusal = database_.refusal(job);
    const bool is_free = !database_.refuses(job) && !database_.is_locked(job);
    if (still_matches && is_free && change(bulk, job)) ++progress.batch.changed;
  }
  progress.batch.is_done = true;
  return progress.batch;
}

}  // namespace tocsin
