// The claimer and rows that the store does not claim: they cost no other job its claim.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "support/counting_waker.h"
#include "unit/pipeline/claimer_fixture.h"

namespace tocsin {
namespace {

class RefusedClaims : public ClaimerTest {
 protected:
  // The table of type 1. A claim ends before a row that `is_refused` names.
  void store_rows(Rows& rows, const std::function<bool(JobId)>& is_refused) {
    store.on_claim_due = [this, &rows, is_refused](auto, DueSpan span, int limit, auto,
                                                   auto&) -> Result<std::vector<ClaimedJob>> {
      std::vector<ClaimedJob> won;
      auto end = rows.upper_bound(span.after());
      const auto begin = end;
      for (; end != rows.end() && std::ssize(won) < limit && !is_refused(end->second); ++end)
        won.push_back(claimed(end->second, 1));
      if (end != rows.end() && std::ssize(won) < limit) {
        if (won.empty()) return refused();
        store.claims.is_cut_short = true;
      }
      rows.erase(begin, end);
      return won;
    };
    scan_from(rows, 1);
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) {
      now = std::min(step(), now + 1s);
      for (const ClaimedJob& job : won()) shared().release(job.job.type_id, 1);
    }
  }
  static Error refused() { return {ErrorCode::invalid, "not this one", ""}; }
};

TEST_F(RefusedClaims, AreReportedAndLeftToTheScan) {
  push_due({{1, 1, kStart}, {2, 1, kStart}, {3, 1, kStart}});
  win_all_but({2, 3});
  store.claims.refused = {{2, refused()}};
  step();
  EXPECT_EQ(events.failures(), 1);
  EXPECT_EQ(won().size(), 1U);
  EXPECT_EQ(running(), 1U);
  const auto again = shared().candidates.pop_some(10);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].job_id, 3) << "it may have come too early";
  EXPECT_EQ(shared().known.size(), 1U);
}

TEST_F(RefusedClaims, LeaveUntriedJobsInTheQueue) {
  push_due({{1, 1, kStart - 2s}, {2, 1, kStart - 1s}, {3, 1, kStart - 1s}, {4, 2, kStart - 1s}});
  std::set<JobId> claimed_ids;
  store.on_claim = [&](auto jobs, auto, auto&) {  // one refused row, one job won, and the rest is untried
    store.claims.refused = {{jobs[0], refused()}};
    store.claims.untried = jobs.size() - std::min<std::size_t>(jobs.size(), 2);
    std::vector<ClaimedJob> out;
    if (jobs.size() > 1) out.push_back(claimed(jobs[1], jobs[1] == 4 ? 2 : 1));
    for (const JobId id : jobs) claimed_ids.insert(id);
    return out;
  };
  EXPECT_LE(step(), now);
  EXPECT_EQ(shared().known.size(), 2U);
  EXPECT_EQ(running(), 1U) << "untried jobs hold no slot";
  EXPECT_LE(step(), now);
  EXPECT_EQ(claimed_ids, (std::set<JobId>{1, 2, 3, 4}));
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_EQ(running(), 2U);
  EXPECT_EQ(events.failures(), 2);
}

TEST_F(RefusedClaims, ArePassedInABacklog) {
  for (const Duration apart : {1000us, 0us}) {  // also among rows of one instant
    Rows rows;
    for (JobId id = 1; id <= 600; ++id) rows.insert({kStart + id * apart, id});
    store_rows(rows, [](JobId id) { return id == 1 || id == 301 || id == 302; });
    shared().due.push_backlog({{0, 1}, kStart});
    const int failures = events.failures();
    steps(40);
    EXPECT_EQ(rows.size(), 3U) << apart.count();
    EXPECT_EQ(events.failures() - failures, 3);
    EXPECT_FALSE(shared().due.has_backlog({0, 1}));
    EXPECT_EQ(shared().ended_backlogs.pop_some(10).size(), 1U) << "the scanner reads what is left";
    EXPECT_EQ(running(), 0U);
  }
}

// A store that claims no row is not asked all the time.
TEST_F(RefusedClaims, ArePassedWithAPauseAfterEachHundred) {
  Rows rows;
  for (JobId id = 1; id <= 400; ++id) rows.insert({kStart + id * 1ms, id});
  store_rows(rows, [](JobId id) { return id <= 300; });
  shared().due.push_backlog({{0, 1}, kStart});
  int pauses = 0;
  for (int i = 0; i < 1'000 && rows.size() > 300; ++i) {
    const MonoTime next = step();
    pauses += next > now ? 1 : 0;
    now = std::max(now, next);
  }
  EXPECT_EQ(rows.size(), 300U);
  EXPECT_EQ(pauses, 3);
}

TEST_F(RefusedClaims, WakeClaimersOnlyForUntriedJobs) {
  CountingWaker claimer;
  shared().due.set_claimers({&claimer});
  for (const std::size_t untried : {0U, 1U}) {
    push_due({{1, 1, kStart - 1s}, {2, 1, kStart - 1s}});
    store.on_claim = [&](auto jobs, auto, auto&) {
      store.claims.refused = {{jobs[0], refused()}};
      store.claims.untried = untried;
      return std::vector<ClaimedJob>{};
    };
    claimer.wakes = 0;
    step();
    EXPECT_EQ(claimer.wakes > 0, untried > 0);
  }
}

TEST_F(RefusedClaims, OfWholeBatchesBringAPauseAfterEachHundred) {
  store.on_claim = [&](auto jobs, auto, auto&) {
    for (const JobId id : jobs) store.claims.refused.push_back({id, refused()});
    return std::vector<ClaimedJob>{};
  };
  int pauses = 0;
  for (JobId id = 1; id <= 210; id += 10) {
    std::vector<Candidate> jobs;
    for (JobId each = id; each < id + 10; ++each) jobs.push_back({each, 1, kStart - 1s});
    push_due(jobs);
    pauses += step() > now ? 1 : 0;
  }
  EXPECT_EQ(pauses, 2);
  EXPECT_EQ(shared().known.size(), 0U);
}

// Another error than a row's tells nothing of the first row.
TEST_F(RefusedClaims, AreNotAssumedWhenTheDatabaseIsAway) {
  shared().due.push_backlog({{0, 1}, kStart});
  store.on_claim_due = [](auto, auto, auto, auto, auto&) { return unavailable(); };
  EXPECT_EQ(step(), now + config.retry_pause);
  EXPECT_FALSE(shared().due.has_backlog({0, 1}));
}

TEST_F(RefusedClaims, KeepNoConsumerFromTheRowsBehind) {
  set_types({biz_type(1, "pull")});
  Rows rows;
  for (JobId id = 1; id <= 3; ++id) rows.insert({kStart + id * 1ms, id});
  store_rows(rows, [](JobId id) { return id == 2; });
  shared().due.push_backlog({{0, 1}, kStart});
  std::vector<JobId> got;
  for (int consumer = 0; consumer < 2; ++consumer)
    EXPECT_TRUE(shared().polls->add(std::make_shared<const Poll>(Poll{1, 1, 30s, now, now + 10s, [] { return false; },
                                                                      [&](const std::vector<ClaimedJob>& jobs) {
                                                                        for (const ClaimedJob& job : jobs)
                                                                          got.push_back(job.job.job_id);
                                                                      }})));
  steps(20);
  EXPECT_EQ(got, (std::vector<JobId>{1, 3}));
}

}  // namespace
}  // namespace tocsin
