// Sessions over the database in memory: every call passes the fault point on its way there and back.
#include "support/fake_sessions.h"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace tocsin {

namespace {

template <class T>
std::vector<T> copied(std::span<const T> items) {
  return {items.begin(), items.end()};
}

}  // namespace

Result<ScanReply> FakeJobStore::scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) {
  const MonoTime asked = local_now();
  auto reply = call<ScanReply>("scan", false, [&db = database_, r = copied(ranges), search, mark](WallTime now) {
    return db.scan(r, search, mark, now);
  });
  if (reply) reply->asked = asked, reply->answered = local_now();
  return reply;
}

Result<Claims> FakeJobStore::claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                                   const ClaimTicket& ticket) {
  return call<Claims>("claim", true, [&db = database_, j = copied(jobs), t = copied(ttr), ticket](WallTime now) {
    return db.claim(j, t, ticket, now);
  });
}

Result<Claims> FakeJobStore::claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket) {
  return call<Claims>("claim_due", true,
                      [=, &db = database_](WallTime now) { return db.claim_due(lane, span, limit, ttr, ticket, now); });
}

Result<std::vector<ClaimedJob>> FakeJobStore::claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) {
  return call<std::vector<ClaimedJob>>("claimed_with", false, [&db = database_, ticket, j = copied(jobs)](WallTime) {
    return db.claimed_with(ticket, j);
  });
}

Result<std::vector<ClaimedJob>> FakeJobStore::claimed_with(const ClaimTicket& ticket, Lane lane) {
  return call<std::vector<ClaimedJob>>("claimed_with", false,
                                       [=, &db = database_](WallTime) { return db.claimed_with(ticket, lane); });
}

Result<std::vector<Fired>> FakeJobStore::fire(std::span<const Candidate> jobs, const std::string& node) {
  using Replies = Result<std::vector<Fired>>;
  return call<std::vector<Fired>>("fire", true, [&db = database_, j = copied(jobs), node](WallTime now) -> Replies {
    for (const Candidate& job : j)
      if (const auto why = db.refusal(job.job_id)) return *why;
    return db.fire(j, node, now);
  });
}

Result<std::vector<Fired>> FakeJobStore::fire_due(Lane lane, DueSpan span, int limit, const std::string& node) {
  return call<std::vector<Fired>>(
      "fire_due", true, [=, &db = database_](WallTime now) { return db.fire_due(lane, span, limit, node, now); });
}

Result<std::vector<FinishReply>> FakeJobStore::finish(std::span<const FinishRequest> requests,
                                                      const std::string& node) {
  using Replies = Result<std::vector<FinishReply>>;
  return call<std::vector<FinishReply>>("finish", true,
                                        [&db = database_, r = copied(requests), node](WallTime now) -> Replies {
                                          for (const FinishRequest& request : r)
                                            if (const auto why = db.refusal(request.job_id)) return *why;
                                          return db.finish(r, node, now);
                                        });
}

Result<std::vector<std::optional<Duration>>> FakeJobStore::leases_left(std::span<const Lease> leases) {
  return call<std::vector<std::optional<Duration>>>(
      "leases_left", false, [&db = database_, l = copied(leases)](WallTime now) { return db.leases_left(l, now); });
}

Result<int> FakeJobStore::mark_dead(std::span<const JobId> jobs) {
  return call<int>("mark_dead", true, [&db = database_, j = copied(jobs)](WallTime now) -> Result<int> {
    if (const auto why = db.refusal(j)) return *why;
    return db.mark_dead(j, now);
  });
}

Result<int> FakeJobStore::drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node) {
  return call<int>("drop_too_late", true, [=, &db = database_](WallTime now) {
    return db.drop_too_late(lane, before, limit, passed, node, now);
  });
}

Result<std::vector<CreateReply>> FakeClientStore::create(std::span<const NewJob> jobs, CreateMode mode) {
  return call<std::vector<CreateReply>>(
      "create", true, [&db = database_, j = copied(jobs), mode](WallTime now) { return db.create(j, mode, now); });
}

Result<std::vector<CancelReply>> FakeClientStore::cancel(std::span<const JobId> jobs, LockWait wait) {
  const auto is_locked = [&](JobId job) { return database_.is_locked(job); };
  if (wait == LockWait::some_seconds && std::ranges::any_of(jobs, is_locked)) ++database_.lock_waits;
  return call<std::vector<CancelReply>>(
      "cancel", true, [&db = database_, j = copied(jobs)](WallTime now) { return db.cancel(j, now); });
}

Result<CancelAllReply> FakeClientStore::cancel_all(const std::string& biz_id, std::optional<TypeId> type) {
  return call<CancelAllReply>("cancel_all", true,
                              [=, &db = database_](WallTime now) { return db.cancel_all(biz_id, type, now); });
}

Result<ChangeBatchReply> FakeClientStore::change_together(const ChangeBatch& batch) {
  return call<ChangeBatchReply>("change_together", true,
                                [=, &db = database_](WallTime now) { return db.change_together(batch, now); });
}

Result<std::vector<std::optional<Job>>> FakeClientStore::find(std::span<const JobId> jobs) {
  return call<std::vector<std::optional<Job>>>("find", false,
                                               [&db = database_, j = copied(jobs)](WallTime) { return db.find(j); });
}

Result<std::vector<KeyList>> FakeClientStore::list_keys(std::span<const KeyQuery> queries) {
  return call<std::vector<KeyList>>("list_keys", false,
                                    [&db = database_, q = copied(queries)](WallTime) { return db.list_keys(q); });
}

Result<std::vector<Result<ChangeReply>>> FakeClientStore::retry_each(std::span<const JobId> jobs) {
  return call<std::vector<Result<ChangeReply>>>("retry", true, [&db = database_, ids = copied(jobs)](WallTime now) {
    std::vector<Result<ChangeReply>> replies;
    for (const JobId id : ids) replies.push_back(db.retry(id, now));
    return replies;
  });
}

Result<int> FakeClientStore::retry_many(const RetryMany& request) {
  return call<int>("retry_many", true, [=, &db = database_](WallTime now) { return db.retry_many(request, now); });
}

Result<std::vector<std::optional<LeasedJob>>> FakeClientStore::leased(std::span<const Lease> leases) {
  return call<std::vector<std::optional<LeasedJob>>>(
      "leased", false, [&db = database_, l = copied(leases)](WallTime now) { return db.leased(l, now); });
}

Result<std::vector<LeaseResult>> FakeClientStore::finish_leased(std::span<const FinishRequest> requests,
                                                                const std::string& node) {
  return call<std::vector<LeaseResult>>(
      "finish_leased", true,
      [&db = database_, r = copied(requests), node](WallTime now) { return db.finish_leased(r, node, now); });
}

Result<std::vector<LeaseResult>> FakeClientStore::extend(std::span<const Extension> extensions) {
  return call<std::vector<LeaseResult>>(
      "extend", true, [&db = database_, e = copied(extensions)](WallTime now) { return db.extend(e, now); });
}

Result<std::optional<Job>> FakeReportStore::find(JobId job) {
  return call<std::optional<Job>>("find", false, [=, &db = database_](WallTime) { return db.find(job); });
}

Result<JobList> FakeReportStore::list(const JobFilter& filter) {
  return call<JobList>("list", false, [=, &db = database_](WallTime) {
    JobList list{db.list(filter)};
    list.is_cut = cut_to_bytes(list.jobs);
    return list;
  });
}

Result<std::vector<TypeCount>> FakeReportStore::counts() {
  return call<std::vector<TypeCount>>("counts", false, [&db = database_](WallTime) { return db.counts(); });
}

Result<std::int64_t> FakeReportStore::overdue(int at_most) {
  return call<std::int64_t>("overdue", false, [=, &db = database_](WallTime now) { return db.overdue(at_most, now); });
}

Result<std::vector<std::int64_t>> FakeReportStore::due_soon(std::span<const Shard> shards, Duration within, int at_most,
                                                            bool is_overdue_counted) {
  return call<std::vector<std::int64_t>>("due_soon", false, [=, s = copied(shards), &db = database_](WallTime now) {
    std::vector<std::int64_t> counts;
    for (const Shard shard : s) {
      const auto n = std::ranges::count_if(db.live(), [&](const auto& entry) {
        const Job& job = entry.second.job;
        return job.status == JobStatus::pending && job.shard() == shard && job.fire_at < now + within &&
               (is_overdue_counted || job.fire_at >= now);
      });
      counts.push_back(std::min<std::int64_t>(n, at_most));
    }
    return counts;
  });
}

Result<DatabaseInfo> FakeReportStore::info() {
  return call<DatabaseInfo>("info", false, [&db = database_](WallTime now) {
    return DatabaseInfo{"memory", db.shards(), 1, now};
  });
}

Result<std::vector<std::string>> FakeReportStore::report(const ReportQuery& query) {
  using Rows = std::vector<std::string>;
  return call<Rows>("report", false, [&](WallTime) -> Result<Rows> {
    database_.reports_asked.push_back(query);
    if (database_.report_error) return *database_.report_error;
    const Rows& all = database_.report_rows[query.report];
    return Rows{all.begin(), all.begin() + std::min<std::ptrdiff_t>(std::ssize(all), query.limit)};
  });
}

Result<std::vector<BizType>> FakeTypeStore::list(Removed removed) {
  return call<std::vector<BizType>>("types", false, [=, &db = database_](WallTime) { return db.list_types(removed); });
}

Result<std::optional<BizType>> FakeTypeStore::find(const std::string& name) {
  return call<std::optional<BizType>>("type_named", false, [&db = database_, name](WallTime) {
    std::vector<BizType> all = db.list_types(Removed::left_out);
    const auto type = std::ranges::find(all, name, &BizType::name);
    return type == all.end() ? std::optional<BizType>() : *type;
  });
}

Result<TypeStore::Changes> FakeTypeStore::changed_since(WallTime time) {
  return call<Changes>("types_changed", false, [&db = database_, time](WallTime) {
    Changes changes{db.list_types(Removed::included), {}};
    changes.version = TypeCatalog(changes.types).version;
    std::erase_if(changes.types, [time](const BizType& type) { return type.gmt_modified <= time; });
    return changes;
  });
}

Result<bool> FakeTypeStore::has_any(std::span<const std::string> names, Removed removed) {
  return call<bool>("has_any_type", false,
                    [all = std::vector(names.begin(), names.end()), removed, &db = database_](WallTime) {
                      return db.has_any_type(all, removed);
                    });
}

Result<TypeStore::PutReply> FakeTypeStore::put(const BizType& type, std::optional<WallTime> version) {
  return call<PutReply>("put_type", true, [=, &db = database_](WallTime now) {
    if (version && !db.has_version(type.name, *version)) return PutReply{{}, false, true};
    return db.put_type(type, now);
  });
}

Result<TypeStore::RemoveReply> FakeTypeStore::remove(const std::string& name, Registry registry,
                                                     std::optional<WallTime> version) {
  return call<RemoveReply>("remove_type", true, [=, &db = database_](WallTime now) {
    if (version && !db.has_version(name, *version)) return RemoveReply::jobs_may_come;
    return db.remove_type(name, registry, now);
  });
}

Status FakeTypeStore::renew(const std::string& name) {
  return call<Unit>("renew_type", true, [&db = database_, name](WallTime now) {
    db.renew_type(name, now);
    return Unit{};
  });
}

Result<std::optional<BizType>> FakeTypeStore::set_paused(const std::string& name, bool paused,
                                                         std::optional<WallTime> until) {
  return call<std::optional<BizType>>(
      "pause_type", true, [=, &db = database_](WallTime now) { return db.pause_type(name, paused, until, now); });
}

Result<PermitReply> FakePermitStore::renew(const PermitBeat& beat) {
  const MonoTime asked = local_now();
  // The clock is read when the types are locked.
  auto reply = call<PermitReply>("renew_permits", true,
                                 [&db = database_, beat](WallTime) { return db.permits.renew(beat, db.now()); });
  if (reply) reply->asked = asked, reply->answered = local_now();
  return reply;
}

Result<int> FakePermitStore::take_over(NodeId node, std::int64_t number, TypeId type, int n) {
  return call<int>("take_over_permits", true,
                   [=, &db = database_](WallTime now) { return db.permits.take_over(node, number, type, n, now); });
}

Status FakePermitStore::return_all(NodeId node) {
  return call<Unit>("return_permits", true, [&db = database_, node](WallTime) {
    db.permits.return_all(node);
    return Unit{};
  });
}

Status FakeTypeStore::mirror(std::span<const BizType> types) {
  return call<Unit>("mirror_types", true, [all = std::vector(types.begin(), types.end()), &db = database_](WallTime) {
    db.mirror_types(all);
    return Unit{};
  });
}

Result<BeatReply> FakeMemberStore::beat(const Beat& beat) {
  const MonoTime asked = local_now();
  auto reply = call<BeatReply>("beat", true, [&db = database_, beat](WallTime now) {
    BeatReply answer = db.members.beat(beat, now);
    answer.connection += db.generation() << 32;
    return answer;
  });
  if (reply) reply->asked = asked, reply->answered = local_now();
  return reply;
}

Result<bool> FakeMemberStore::replace_map(std::int64_t known, const std::vector<NodeId>& owners) {
  return call<bool>("replace_map", true,
                    [&db = database_, known, owners](WallTime) { return db.members.replace_map(known, owners); });
}

Status FakeMemberStore::leave(NodeId id) {
  return call<Unit>("leave", true, [&db = database_, id](WallTime) {
    db.members.leave(id);
    return Unit{};
  });
}

}  // namespace tocsin
