// JobStore: scan.
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

constexpr auto kMinute = std::chrono::minutes(1);

std::vector<JobId> ids_of(const std::vector<ScanReply::Row>& rows) {
  std::vector<JobId> ids;
  for (const auto& row : rows) ids.push_back(row.candidate.job_id);
  return ids;
}

using Ids = std::vector<JobId>;

TEST_P(StoreContract, ScanReturnsALaneInOrderOfTimeThenId) {
  const WallTime base = db->now() + std::chrono::hours(1);
  std::vector<NewJob> wanted;
  for (const int minute : {5, 3, 3, 9, 1}) {
    wanted.push_back(due("same"));
    wanted.back().when = {base + minute * kMinute, {}};
  }
  const Ids jobs = create(wanted);
  const ScanRange all{lane_of(jobs[0]), WallTime{}, 0, base + std::chrono::hours(1), 100};
  const auto reply = must(db->store().scan({&all, 1}));
  ASSERT_EQ(reply.rows.size(), 1u);
  EXPECT_EQ(ids_of(reply.rows[0]),
            (Ids{jobs[4], std::min(jobs[1], jobs[2]), std::max(jobs[1], jobs[2]), jobs[0], jobs[3]}));
  EXPECT_EQ(reply.rows[0][0].candidate.fire_at, base + kMinute);
  EXPECT_EQ(reply.rows[0][0].candidate.type_id, type_id);
  EXPECT_FALSE(reply.rows[0][0].is_exhausted);
}

TEST_P(StoreContract, ScanEndsBeforeItsUpperBoundAndBeginsBehindItsCursor) {
  const WallTime at = db->now() + std::chrono::hours(1);
  std::vector<NewJob> wanted(3, due("same"));
  wanted[0].when = wanted[1].when = {at, {}};
  wanted[2].when = {at + Duration(1), {}};
  const Ids jobs = create(wanted);
  const JobId low = std::min(jobs[0], jobs[1]), high = std::max(jobs[0], jobs[1]);
  const Lane lane = lane_of(jobs[0]);
  const std::vector<ScanRange> ranges{
      {lane, WallTime{}, 0, at, 10},                // before is exclusive
      {lane, WallTime{}, 0, at + Duration(1), 10},  // the two of the same instant
      {lane, at, low, at + kMinute, 10},            // behind (at, low)
      {lane, at, high, at + kMinute, 10},           // behind both
      {lane, at, 0, at + kMinute, 10},              // no id is below 0
      {lane, at + Duration(1), jobs[2], at + kMinute, 10},
  };
  const auto reply = must(db->store().scan(ranges));
  ASSERT_EQ(reply.rows.size(), ranges.size());
  EXPECT_EQ(ids_of(reply.rows[0]), Ids{});
  EXPECT_EQ(ids_of(reply.rows[1]), (Ids{low, high}));
  EXPECT_EQ(ids_of(reply.rows[2]), (Ids{high, jobs[2]}));
  EXPECT_EQ(ids_of(reply.rows[3]), Ids{jobs[2]});
  EXPECT_EQ(ids_of(reply.rows[4]), (Ids{low, high, jobs[2]}));
  EXPECT_EQ(ids_of(reply.rows[5]), Ids{});
}

TEST_P(StoreContract, ScanGivesAtMostItsLimitAndACursorPagesThroughAll) {
  const Ids jobs = create(std::vector<NewJob>(25, later("same")));
  ScanRange range{lane_of(jobs[0]), WallTime::min(), 0, db->now() + 2 * kLong, 10};
  Ids seen;
  for (const std::size_t expected : {10u, 10u, 5u, 0u}) {
    const auto reply = must(db->store().scan({&range, 1}));
    ASSERT_EQ(reply.rows[0].size(), expected);
    for (const auto& row : reply.rows[0]) {
      seen.push_back(row.candidate.job_id);
      range.after = row.candidate.fire_at;
      range.after_id = row.candidate.job_id;
    }
  }
  EXPECT_EQ(seen, jobs);
}

TEST_P(StoreContract, ScanAnswersManyRangesInTheirOrder) {
  const JobId mine = create(later("same"));
  NewJob foreign = later("same");
  foreign.type_id = other_type_id;
  const JobId other = create(foreign);
  const WallTime before = db->now() + 2 * kLong;
  const Shard shard = shard_of(mine);
  std::vector<ScanRange> ranges;
  for (int i = 0; i < 50; ++i) {
    ranges.push_back({{shard, other_type_id}, WallTime{}, 0, before, 5});
    ranges.push_back({{shard, type_id}, WallTime{}, 0, before, 5});
    ranges.push_back({{static_cast<Shard>((shard + 1) % db->shards()), type_id}, WallTime{}, 0, before, 5});
    ranges.push_back({{shard, 9'999}, WallTime{}, 0, before, 5});
  }
  const auto reply = must(db->store().scan(ranges));
  ASSERT_EQ(reply.rows.size(), 200u);
  for (std::size_t i = 0; i < 200; i += 4) {
    EXPECT_EQ(ids_of(reply.rows[i]), Ids{other});
    EXPECT_EQ(ids_of(reply.rows[i + 1]), Ids{mine});
    EXPECT_TRUE(reply.rows[i + 2].empty());
    EXPECT_TRUE(reply.rows[i + 3].empty());
  }
}

TEST_P(StoreContract, ScanFindsTheLanesThatHaveARowDueSoon) {
  const WallTime soon = db->now() + kMinute;
  std::vector<NewJob> wanted(4, due("a"));
  for (NewJob& job : wanted) job.when = {soon, {}};
  wanted[1].type_id = other_type_id;
  wanted[1].when = {soon + 60 * kMinute, {}};
  wanted[3].biz_id = "of another shard";
  const Ids jobs = create(wanted);
  const Shard shard = shard_of(jobs[0]), elsewhere = shard_of(jobs[3]);
  ASSERT_NE(shard, elsewhere);
  const TypeId last = std::max(type_id, other_type_id);
  // By a walk, and by reading the index through.
  const auto found = [&](std::vector<LaneSearch::Walk> walks, Duration ahead, int limit = 100) {
    auto lanes = must(db->store().scan({}, {walks, soon + ahead, limit}, WriterMark::none)).lanes;
    auto read =
        must(db->store().scan({}, {std::move(walks), soon + ahead, limit, std::int64_t{1} << 40}, WriterMark::none))
            .lanes;
    std::ranges::sort(lanes);
    std::ranges::sort(read);
    if (limit == 100) {
      EXPECT_EQ(lanes, read);
    }
    EXPECT_EQ(lanes.size(), read.size());
    return lanes;
  };
  using Lanes = std::vector<Lane>;
  const Lane here{shard, type_id}, later{shard, other_type_id}, there{elsewhere, type_id};
  EXPECT_EQ(found({{shard, 1, last}}, Duration(1)), Lanes{here}) << "the other's row is due later";
  EXPECT_EQ(found({{shard, 1, last}}, Duration(0)), Lanes{});
  EXPECT_EQ(found({{shard, 1, 1'000'000}}, 70 * kMinute), (Lanes{std::min(here, later), std::max(here, later)}));
  EXPECT_EQ(found({{shard, type_id, type_id}}, 70 * kMinute), Lanes{here});
  EXPECT_EQ(found({{shard, other_type_id, other_type_id}}, 70 * kMinute), Lanes{later});
  EXPECT_EQ(found({{shard, last + 1, 1'000'000}}, 70 * kMinute), Lanes{});
  EXPECT_EQ(found({{shard, 1, last}, {elsewhere, 1, last}}, kMinute),
            (Lanes{std::min(here, there), std::max(here, there)}));
  EXPECT_EQ(must(db->store().scan({}, {{{shard, 1, last}, {elsewhere, 1, last}}, soon, 100}, WriterMark::none)).walked,
            3U)
      << "what a walk costs";
  EXPECT_FALSE(
      must(db->store().scan({}, {{{shard, 1, last}}, soon, 100, std::int64_t{1} << 40}, WriterMark::none)).walked);
  EXPECT_EQ(found({{shard, 1, last}, {elsewhere, 1, last}}, kMinute, 1).size(), 1U) << "no more than asked for";
}

TEST_P(StoreContract, ScanOfNoRangeReturnsTheTime) {
  const WallTime before = db->now();
  const auto reply = must(db->store().scan({}));
  EXPECT_TRUE(reply.rows.empty());
  EXPECT_GE(reply.db_now, before);
  EXPECT_LE(reply.db_now, db->now());
}

TEST_P(StoreContract, ScanReturnsTheTimesOfItsRequestAndItsReply) {
  const auto first = must(db->store().scan({}));
  const auto second = must(db->store().scan({}));
  EXPECT_LE(first.asked, first.answered);
  EXPECT_LE(first.answered, second.asked);
  EXPECT_LE(second.asked, second.answered);
}

TEST_P(StoreContract, ScanChangesAndLocksNothing) {
  const JobId id = create(due());
  const Job before = find(id);
  const ScanRange range{lane_of(id), WallTime{}, 0, db->now(), 10};
  EXPECT_EQ(must(db->store().scan({&range, 1})).rows[0].size(), 1u);
  const Job after = find(id);
  EXPECT_EQ(after.gmt_modified, before.gmt_modified);
  EXPECT_EQ(after.attempts, 0);
  const std::vector<Duration> ttr{kLong};
  EXPECT_EQ(must(db->other_store().claim(seen(Ids{id}), ttr, ticket())).won.size(), 1u);
}

TEST_P(StoreContract, ScanShowsRunningJobsAtTheEndOfTheirLease) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id, kLong);
  ScanRange range{lane_of(id), WallTime{}, 0, claimed.job.fire_at, 10};
  EXPECT_TRUE(must(db->store().scan({&range, 1})).rows[0].empty());
  range.before += Duration(1);
  const auto rows = must(db->store().scan({&range, 1})).rows[0];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].candidate.fire_at, claimed.job.fire_at);
  EXPECT_FALSE(rows[0].is_exhausted);
}

TEST_P(StoreContract, ScanMarksAJobOnItsLastAttemptAsExhausted) {
  NewJob job = due();
  job.max_attempts = 1;
  const JobId id = create(job);
  const ScanRange range{lane_of(id), WallTime{}, 0, db->now() + 2 * kLong, 10};
  EXPECT_FALSE(must(db->store().scan({&range, 1})).rows[0].at(0).is_exhausted);
  claim_one(id);
  EXPECT_TRUE(must(db->store().scan({&range, 1})).rows[0].at(0).is_exhausted);
}

TEST_P(StoreContract, ScanNoLongerShowsFinishedJobs) {
  const Ids jobs = create({due("same"), due("same"), due("same")});
  cancel(jobs[0]);
  must(db->store().fire(seen(Ids{jobs[1]}), "node-a"));
  kill(jobs[2]);
  const ScanRange range{lane_of(jobs[0]), WallTime{}, 0, db->now() + 2 * kLong, 10};
  EXPECT_TRUE(must(db->store().scan({&range, 1})).rows[0].empty());
}

TEST_P(StoreContract, ScanReadsRowsThatOthersHoldLocked) {
  const JobId id = create(due());
  db->lock(id);
  const ScanRange range{lane_of(id), WallTime{}, 0, db->now(), 10};
  EXPECT_EQ(must(db->store().scan({&range, 1})).rows[0].size(), 1u);
  db->unlock();
}

}  // namespace
}  // namespace tocsin
