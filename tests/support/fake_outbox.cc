#include "support/fake_outbox.h"

#include <algorithm>
#include <utility>

namespace tocsin {

using namespace std::chrono_literals;

FakeOutbox::FakeOutbox(DatabaseId database_id, FakeDatabase& database, std::set<Shard> here)
    : database_(database), here_(std::move(here)), last_sequence_((JobId{1} + database_id) << 32) {
  database_.lives_here = [this](Shard shard) { return here_.contains(shard); };
}

JobId FakeOutbox::create(const std::string& biz_id, Duration in, const std::optional<std::string>& key, WallTime now) {
  const Shard shard = shard_of(biz_id, database_.shards());
  if (here_.contains(shard)) {
    NewJob job;
    job.biz_id = biz_id;
    job.type_id = 1;
    job.when.in = in;
    job.idempotency_key = key;
    return database_.create({job}, CreateMode::all_or_nothing, now)->front().job_id;
  }
  for (const auto& [id, each] : entries_)
    if (key && !each.is_settled && each.entry.biz_id == biz_id && each.entry.idempotency_key == key) return id;
  const JobId id = make_job_id(++last_sequence_, shard);
  entries_[id].entry = {id, 1, 16, false, now + in, now, {}, {}, biz_id, key, {}, {}};
  return id;
}

FakeOutbox::Entry* FakeOutbox::changeable(JobId job) {
  const auto own = entries_.find(job);
  if (own == entries_.end() || own->second.is_settled || own->second.entry.is_cancelled) return nullptr;
  if (own->second.claimed_at && !bugs.cancels_claimed) return nullptr;
  if (own->second.entry.idempotency_key && !bugs.changes_keyed) return nullptr;
  return &own->second;
}

bool FakeOutbox::cancel(JobId job, WallTime now) {
  Entry* const own = changeable(job);
  if (!own) return false;
  own->entry.is_cancelled = true;
  own->entry.changed_at = now;
  return true;
}

bool FakeOutbox::reschedule(JobId job, WallTime action_time, WallTime now) {
  Entry* const own = changeable(job);
  if (!own) return false;
  own->entry.action_time = action_time;
  own->entry.changed_at = now;
  return true;
}

std::string FakeOutbox::error_of(JobId job) const {
  const auto own = entries_.find(job);
  return own == entries_.end() ? "" : own->second.error;
}

bool FakeOutbox::is_refused(JobId job) const {
  const auto own = entries_.find(job);
  return own != entries_.end() && !own->second.error.empty() && own->second.existing != job;
}

std::vector<OutboxEntry> FakeOutbox::fail_over() {
  std::vector<OutboxEntry> given_back;
  for (const auto& [id, before] : standby_) {
    const auto own = entries_.find(id);
    if (own != entries_.end() && own->second.claimed_at == before.claimed_at && !own->second.is_settled) continue;
    entries_[id] = before;
    given_back.push_back(before.entry);
  }
  standby_.clear();
  return given_back;
}

std::vector<OutboxEntry> FakeOutbox::claim(const std::set<Shard>& mine, const std::set<Shard>& others,
                                           std::int64_t relay, int limit, WallTime now) {
  std::vector<Entry*> free;
  for (auto& [id, each] : entries_) {
    const Shard shard = shard_of(id);
    const bool is_mine = mine.contains(shard);
    const bool is_meant = is_mine || (others.contains(shard) && each.entry.gmt_create < now - 10s);
    const auto holds = each.claimed_by == relay ? 1s : is_mine ? 3s : 10s;
    if (!is_meant || each.is_settled || (each.claimed_at && *each.claimed_at > now - holds)) continue;
    free.push_back(&each);
  }
  std::ranges::stable_sort(
      free, {}, [](const Entry* each) { return std::pair(each->claimed_at.has_value(), each->entry.action_time); });
  if (free.size() > static_cast<std::size_t>(limit)) free.resize(static_cast<std::size_t>(limit));
  std::vector<OutboxEntry> claimed;
  for (Entry* each : free) {
    each->claimed_by = relay;
    each->claimed_at = now;
    claimed.push_back(each->entry);
  }
  return claimed;
}

void FakeOutbox::settle(const std::vector<TakenOver>& entries) {
  for (const TakenOver& taken : entries) {
    const auto own = entries_.find(taken.job_id);
    if (own == entries_.end() || !own->second.claimed_at || own->second.is_settled) continue;
    if (own->second.entry.changed_at != taken.changed_at && !bugs.settles_changed) continue;
    if (!taken.existing && taken.error.empty()) {
      entries_.erase(own);
    } else {
      own->second.is_settled = true;
      own->second.error = taken.error;
      own->second.existing = taken.existing;
    }
  }
}

std::vector<JobId> FakeOutbox::gone(const std::vector<JobId>& jobs) const {
  std::vector<JobId> gone;
  for (const JobId job : jobs)
    if (!entries_.contains(job)) gone.push_back(job);
  return gone;
}

Result<std::vector<TakenOver>> FakeOutbox::take_over(DatabaseId source, WallTime valid_until,
                                                     const std::vector<OutboxEntry>& entries, WallTime now) {
  if (now > valid_until) return Error{ErrorCode::conflict, "the outbox was read too long ago", ""};
  for (const OutboxEntry& entry : entries) {
    if (!here_.contains(shard_of(entry.job_id))) return Error{ErrorCode::moved, "the shard lives elsewhere", ""};
    const auto before = relayed_.find(entry.job_id);
    if (before != relayed_.end() && has_changed(entry, before->second) &&
        before->second.relayed_at > valid_until - IntakeStore::kHandOver)
      return Error{ErrorCode::conflict, "the outbox was read before the last change of its entry", ""};
  }
  std::vector<TakenOver> taken;
  for (const OutboxEntry& entry : entries) taken.push_back(take_one(source, entry, now));
  return taken;
}

bool FakeOutbox::has_changed(const OutboxEntry& entry, const Relayed& record) const {
  if (!entry.changed_at || bugs.drops_later_changes) return false;
  if (bugs.compares_clocks) return !record.changed_at || *entry.changed_at > *record.changed_at;
  return entry.changed_at != record.changed_at || bugs.repeats_changes;
}

TakenOver FakeOutbox::take_one(DatabaseId source, const OutboxEntry& entry, WallTime now) {
  TakenOver reply{entry.job_id, entry.type_id, {}, {}, "", entry.changed_at};
  if (const auto before = relayed_.find(entry.job_id); before != relayed_.end()) {
    Relayed& record = before->second;
    reply.existing = record.existing;
    if (record.source != source || record.gmt_create != entry.gmt_create) {
      reply.error = "its job_id is that of another job";
    } else if (has_changed(entry, record)) {
      reply.error = change_relayed(entry, now);
      if (reply.error.empty())
        record.changed_at = entry.changed_at, record.relayed_at = now;
      else
        reply.existing = entry.job_id;
    }
    return reply;
  }
  Relayed record{source, entry.gmt_create, now, {}, {}, entry.changed_at};
  if (const auto key = database_.job_with_key(entry.biz_id, entry.type_id, entry.idempotency_key)) {
    record.existing = reply.existing = key;
  } else if (!database_.copy_of(entry.job_id)) {
    database_.insert_with_id(entry.job_id, entry.biz_id, entry.type_id, entry.action_time, entry.idempotency_key,
                             entry.gmt_create, now);
    if (entry.is_cancelled)
      static_cast<void>(database_.cancel({entry.job_id}, now));
    else
      reply.fire_at = std::max(entry.action_time, now);
  }
  if (!bugs.forgets_what_it_took) relayed_[entry.job_id] = record;
  return reply;
}

std::string FakeOutbox::change_relayed(const OutboxEntry& entry, WallTime now) {
  const JobId job = entry.job_id;
  if (entry.is_cancelled) {
    const auto reply = database_.cancel({job}, now);
    const auto copy = database_.copy_of(job);
    if (reply &&
        (reply->front().kind == CancelReply::Kind::cancelled || (copy && copy->row.job.status == JobStatus::cancelled)))
      return "";
    return "cancelled too late";
  }
  const auto reply = database_.reschedule(job, {entry.action_time, {}}, now);
  return reply && reply->kind == ChangeReply::Kind::changed ? "" : "rescheduled too late";
}

std::vector<JobId> FakeOutbox::remembered(DatabaseId source, const std::set<Shard>& shards, int limit, WallTime now) {
  std::erase_if(relayed_, [&](const auto& each) { return each.second.gone_at && *each.second.gone_at < now - 10min; });
  std::vector<JobId> jobs;
  for (const auto& [id, each] : relayed_) {
    const Duration kept = each.existing ? Duration(7 * 24h) : Duration(1min);
    if (each.source == source && shards.contains(shard_of(id)) && !each.gone_at && each.relayed_at < now - kept &&
        !(each.existing && database_.copy_of(*each.existing)) && static_cast<int>(jobs.size()) < limit)
      jobs.push_back(id);
  }
  return jobs;
}

void FakeOutbox::note_gone(const std::vector<JobId>& jobs, WallTime now) {
  for (const JobId job : jobs)
    if (const auto own = relayed_.find(job); own != relayed_.end() && !own->second.gone_at) own->second.gone_at = now;
}

namespace {

template <class T>
std::set<T> as_set(std::span<const T> items) {
  return {items.begin(), items.end()};
}

template <class T>
std::vector<T> as_vector(std::span<const T> items) {
  return {items.begin(), items.end()};
}

class FakeOutboxStore final : public OutboxStore, private FakeSession {
 public:
  FakeOutboxStore(FakeOutbox& outbox, const Clock& clock, FaultPoint& faults)
      : FakeSession(outbox.data(), &clock, &faults), outbox_(outbox) {}

  Result<bool> is_empty() override {
    return call<bool>("outbox_is_empty", false, [&own = outbox_](WallTime) { return own.waiting() == 0; });
  }
  Result<std::vector<OutboxEntry>> claim(std::span<const Shard> mine, std::span<const Shard> others, std::int64_t relay,
                                         int limit) override {
    return call<std::vector<OutboxEntry>>(
        "outbox_claim", true, [&own = outbox_, m = as_set(mine), o = as_set(others), relay, limit](WallTime now) {
          return own.claim(m, o, relay, limit, now);
        });
  }
  Status settle(std::span<const TakenOver> entries) override {
    return call<Unit>("outbox_settle", true, [&own = outbox_, e = as_vector(entries)](WallTime) {
      own.settle(e);
      return Unit{};
    });
  }
  Result<std::vector<JobId>> gone(std::span<const JobId> jobs) override {
    return call<std::vector<JobId>>("outbox_gone", false,
                                    [&own = outbox_, j = as_vector(jobs)](WallTime) { return own.gone(j); });
  }
  Status forget_existing() override { return Unit{}; }
  Result<OutboxSize> size() override {
    return call<OutboxSize>("outbox_size", false, [&own = outbox_](WallTime) {
      return OutboxSize{static_cast<std::int64_t>(own.waiting()), 0, Duration(0)};
    });
  }

 private:
  FakeOutbox& outbox_;
};

class FakeIntakeStore final : public IntakeStore, private FakeSession {
 public:
  FakeIntakeStore(FakeOutbox& outbox, const Clock& clock, FaultPoint& faults)
      : FakeSession(outbox.data(), &clock, &faults), outbox_(outbox) {}

  Result<std::vector<TakenOver>> take_over(DatabaseId source, WallTime valid_until,
                                           std::span<const OutboxEntry> entries) override {
    return call<std::vector<TakenOver>>("take_over", true,
                                        [&own = outbox_, source, valid_until, e = as_vector(entries)](WallTime now) {
                                          return own.take_over(source, valid_until, e, now);
                                        });
  }
  Result<std::vector<JobId>> remembered(DatabaseId source, std::span<const Shard> shards, int limit) override {
    return call<std::vector<JobId>>("relayed_to_check", true,
                                    [&own = outbox_, source, s = as_set(shards), limit](WallTime now) {
                                      return own.remembered(source, s, limit, now);
                                    });
  }
  Status note_gone(std::span<const JobId> jobs) override {
    return call<Unit>("relayed_gone", true, [&own = outbox_, j = as_vector(jobs)](WallTime now) {
      own.note_gone(j, now);
      return Unit{};
    });
  }

 private:
  FakeOutbox& outbox_;
};

class FakeRelaySession final : public RelaySession {
 public:
  FakeRelaySession(FakeOutbox& outbox, const Clock& clock, FaultPoint& faults)
      : outbox_(outbox, clock, faults), intake_(outbox, clock, faults), types_(outbox.data(), &clock, &faults) {}
  OutboxStore& outbox() override { return outbox_; }
  IntakeStore& intake() override { return intake_; }
  TypeStore& types() override { return types_; }

 private:
  FakeOutboxStore outbox_;
  FakeIntakeStore intake_;
  FakeTypeStore types_;
};

}  // namespace

std::unique_ptr<RelaySession> fake_relay_end(FakeOutbox& outbox, const Clock& clock, FaultPoint& faults) {
  return std::make_unique<FakeRelaySession>(outbox, clock, faults);
}

}  // namespace tocsin
