#include "scaling/plain_table.h"

#include <algorithm>

#include "base/assert.h"

namespace tocsin {

PlainTable::PlainTable(int shards, std::int64_t jobs, Duration span, TypeId type, std::uint64_t seed)
    : type_(type), shards_(static_cast<std::size_t>(shards)), left_(jobs) {
  Random random(seed);
  for (std::int64_t i = 0; i < jobs; ++i)
    shards_[static_cast<std::size_t>(i % shards)].due.push_back(
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(span.count()))));
  for (Jobs& jobs_of_shard : shards_) {
    std::ranges::sort(jobs_of_shard.due);
    jobs_of_shard.has_fired.resize(jobs_of_shard.due.size());
  }
}

std::vector<ScanReply::Row> PlainTable::read(const ScanRange& range) const {
  const Jobs& jobs = shards_[static_cast<std::size_t>(range.lane.shard)];
  std::vector<ScanReply::Row> rows;
  const std::int64_t after = range.after.time_since_epoch().count();
  auto i = static_cast<std::size_t>(std::ranges::lower_bound(jobs.due, after) - jobs.due.begin());
  for (; i < jobs.due.size() && std::ssize(rows) < range.limit; ++i) {
    const WallTime due(Duration(jobs.due[i]));
    if (due >= range.before) break;
    const JobId id = make_job_id(static_cast<std::int64_t>(i), range.lane.shard);
    if (jobs.has_fired[i] || (due == range.after && id <= range.after_id)) continue;
    rows.push_back({{id, type_, due}, false});
  }
  return rows;
}

bool PlainTable::fire(JobId job, WallTime now, Fired& fired) {
  Jobs& jobs = shards_[static_cast<std::size_t>(shard_of(job))];
  const auto i = static_cast<std::size_t>(job / kMaxShards);
  const WallTime due(Duration(jobs.due[i]));
  if (jobs.has_fired[i] || due > now) return false;
  jobs.has_fired[i] = true;
  --left_;
  fired = {job, type_, due, now};
  return true;
}

Result<ScanReply> PlainStore::scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark) {
  ++statements_.scans;
  statements_.ranges += std::ssize(ranges);
  ScanReply reply;
  reply.asked = scheduler_.now();
  reply.began = db_now();
  reply.oldest_writer = reply.next_writer = reply.began.time_since_epoch().count();  // nobody writes for long
  std::size_t rows = 0;
  for (const ScanRange& range : ranges) rows += reply.rows.emplace_back(table_.read(range)).size();
  for (const LaneSearch::Walk& walk : search.walks) {
    const Lane lane{walk.shard, table_.type()};
    const bool is_meant = walk.first <= lane.type_id && lane.type_id <= walk.last;
    if (is_meant && !table_.read({lane, WallTime::min(), 0, search.before, 1}).empty()) reply.lanes.push_back(lane);
  }
  work(rows + ranges.size() + search.walks.size());
  reply.db_now = db_now();
  reply.answered = scheduler_.now();
  return reply;
}

Result<std::vector<Fired>> PlainStore::fire(std::span<const Candidate> jobs, const std::string&) {
  ++statements_.fires;
  std::vector<Fired> all;
  Fired fired;
  const WallTime now = db_now();
  for (const Candidate& job : jobs) {
    if (!table_.fire(job.job_id, now, fired)) continue;
    all.push_back(fired);
    on_fired_(shard_of(job.job_id), now - fired.due_at);
  }
  statements_.fired += std::ssize(all);
  work(all.size());
  return all;
}

Result<std::vector<Fired>> PlainStore::fire_due(Lane lane, DueSpan span, int limit, const std::string& node) {
  std::vector<Candidate> jobs;
  for (const auto& row : table_.read({lane, span.from, 0, std::min(db_now(), span.to), limit}))
    jobs.push_back(row.candidate);
  return fire(jobs, node);
}

namespace {
[[noreturn]] void unused() {
  constexpr bool is_instant_type = false;  // only such types live here
  TOCSIN_ASSERT(is_instant_type);
  std::abort();
}
}  // namespace

Result<Claims> PlainStore::claim(std::span<const Candidate>, std::span<const Duration>, const ClaimTicket&) {
  unused();
}
Result<Claims> PlainStore::claim_due(Lane, DueSpan, int, Duration, const ClaimTicket&) { unused(); }
Result<std::vector<ClaimedJob>> PlainStore::claimed_with(const ClaimTicket&, std::span<const JobId>) { unused(); }
Result<std::vector<ClaimedJob>> PlainStore::claimed_with(const ClaimTicket&, Lane) { unused(); }
Result<std::vector<FinishReply>> PlainStore::finish(std::span<const FinishRequest>, const std::string&) { unused(); }
Result<std::vector<std::optional<Duration>>> PlainStore::leases_left(std::span<const Lease>) { unused(); }
Result<int> PlainStore::mark_dead(std::span<const JobId>) { unused(); }
Result<int> PlainStore::drop_too_late(Lane, WallTime, int, int, const std::string&) { unused(); }

}  // namespace tocsin
