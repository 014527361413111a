// Leased jobs hold permits until their leases are over, whichever node learns of it first and whatever dies meanwhile.
#include "admission/lease_table.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "pipeline/lease_reaper.h"
#include "unit/pipeline/permits_fixture.h"

namespace tocsin {
namespace {

BizType limited_pull(int max_running) {
  BizType type = limited(max_running);
  type.handler_kind = "pull";
  return type;
}

class LeaseTableTest : public ::testing::Test {
 protected:
  // Starts as many as it may of jobs `from`, ..., and leases them.
  int lease(JobId from, int n) {
    const auto taken = static_cast<int>(flow.take(type, static_cast<std::size_t>(n), Pace::fresh, now).n);
    for (JobId job = from; job < from + taken; ++job) flow.leases().enter(1, {job, job * 10}, now + 30s);
    return taken;
  }
  void settle(JobId job, ClaimToken token) {
    const Lease lease{job, token};
    flow.leases().settle({&lease, 1});
  }
  BizType type = limited_pull(3);
  MonoTime now{1h};
  FlowControl flow;
};

TEST_F(LeaseTableTest, LeasedJobsKeepTheirPermitsUntilTheyAreSettled) {
  EXPECT_EQ(lease(1, 5), 3);
  EXPECT_EQ(lease(4, 5), 0);
  settle(2, 20);
  EXPECT_EQ(lease(4, 5), 1);
}

TEST_F(LeaseTableTest, NoLeaseEndsTwice) {
  lease(1, 3);
  settle(2, 20);
  settle(2, 20);
  settle(2, 21);
  settle(9, 90);
  flow.leases().note({2, 20}, {}, now);
  EXPECT_EQ(flow.used(1), 2U);
  settle(1, 11);
  EXPECT_EQ(flow.used(1), 2U) << "another attempt's token";
}

TEST_F(LeaseTableTest, AnotherLeaseOfTheSameJobEndsTheOneBefore) {
  lease(1, 2);
  ASSERT_EQ(flow.take(type, 1, Pace::fresh, now).n, 1U);
  flow.leases().enter(1, {1, 11}, now + 30s);
  EXPECT_EQ(flow.used(1), 2U);
  settle(1, 10);
  EXPECT_EQ(flow.used(1), 2U);
  settle(1, 11);
  EXPECT_EQ(flow.used(1), 1U);
}

TEST_F(LeaseTableTest, TheReplyOfTheDatabaseEndsOrProlongsALease) {
  lease(1, 2);
  flow.leases().note({1, 10}, Duration(50s), now);
  EXPECT_EQ(flow.leases().last_end(1), now + 50s);
  flow.leases().note({1, 10}, Duration(0), now);
  EXPECT_EQ(flow.used(1), 2U) << "it could not tell";
  flow.leases().note({1, 10}, {}, now);
  EXPECT_EQ(flow.used(1), 1U);
  EXPECT_EQ(flow.leases().last_end(1), now + 30s);
}

TEST_F(LeaseTableTest, ForeignLeasesCountOnlyAfterATakeover) {
  flow.leases().extend(1, {7, 70}, now + 30s);
  EXPECT_EQ(flow.used(1), 0U);
  EXPECT_EQ(flow.leases().foreign_leases(1), 1U);
  flow.leases().take_over(1, 5);
  EXPECT_EQ(flow.used(1), 1U);
  EXPECT_EQ(flow.leases().foreign_leases(1), 0U);
  settle(7, 70);
  EXPECT_EQ(flow.used(1), 0U);
  EXPECT_TRUE(flow.leases().is_empty());
}

TEST_F(LeaseTableTest, HandedOverJobsTakeNoSlotOfTheStartPool) {
  type.handler_kind = "webhook";
  type.max_running = 10;
  type.pool = pool_of(2);
  EXPECT_EQ(lease(1, 5), 2);
  EXPECT_EQ(lease(3, 5), 2);
  EXPECT_EQ(flow.in_pool(*type.pool), 0U);
  EXPECT_EQ(flow.used(1), 4U);
}

// The stage that asks the database ------------------------------------------------------------------------------------

class LeaseReaperChecks : public StageFixture {
 protected:
  void SetUp() override {
    set_types({limited_pull(5)});
    know_time();
    shared().all_shards.set(std::make_shared<const std::vector<Shard>>(std::vector<Shard>{1, 2}));
  }
  void lease(JobId job) {
    ASSERT_EQ(shared().flow->take(limited_pull(5), 1, Pace::fresh, now).n, 1U);
    shared().flow->leases().enter(1, {job, 7}, now + 30s);
  }
  std::size_t used() { return shared().flow->used(1); }
  LeaseReaper reaper{shared(), store};
};

TEST_F(LeaseReaperChecks, SendNoRequestWithoutLeases) {
  EXPECT_EQ(reaper.step(now), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
}

TEST_F(LeaseReaperChecks, FreeThePermitsOfEndedLeases) {
  lease(1025), lease(1026), lease(2049);
  std::vector<JobId> asked;
  store.on_leases_left = [&](std::span<const Lease> leases) {
    std::vector<std::optional<Duration>> left;
    for (const Lease& lease : leases) {
      asked.push_back(lease.job_id);
      left.push_back(lease.job_id == 1026 ? std::nullopt : std::optional(Duration(9s)));
    }
    return left;
  };
  reaper.step(now);
  EXPECT_EQ(asked, (std::vector<JobId>{1025, 1026, 2049}));
  EXPECT_EQ(used(), 2U);
  const MonoTime next = reaper.step(now);
  EXPECT_GT(next, now);
  EXPECT_LE(next, now + 500ms);
  EXPECT_EQ(store.calls, 1);
}

TEST_F(LeaseReaperChecks, SkipLeasesOfOtherDatabases) {
  lease(3);  // shard 3
  EXPECT_EQ(reaper.step(now), now);
  EXPECT_LE(reaper.step(now), now + 500ms);
  EXPECT_EQ(store.calls, 0);
  EXPECT_EQ(used(), 1U);
}

TEST_F(LeaseReaperChecks, WithoutAReplyLeasesContinue) {
  lease(1);
  store.on_leases_left = [](auto) { return unavailable(); };
  EXPECT_GT(reaper.step(now), now);
  EXPECT_EQ(used(), 1U);
}

TEST_F(LeaseReaperChecks, ATableOfManyPagesIsReadToItsEnd) {
  set_types({limited_pull(5000)});
  for (JobId job = 0; job < 2500; ++job) {
    ASSERT_EQ(shared().flow->take(limited_pull(5000), 1, Pace::fresh, now).n, 1U);
    shared().flow->leases().enter(1, {job * 1024 + 1, 7}, now + 30s);
  }
  std::size_t asked = 0;
  store.on_leases_left = [&](std::span<const Lease> leases) {
    asked += leases.size();
    return std::vector<std::optional<Duration>>(leases.size(), Duration(9s));
  };
  for (int i = 0; i < 40 && asked < 2500; ++i, now += 25ms) reaper.step(now);
  EXPECT_EQ(asked, 2500U);
}

// A cluster: consumers lease at one node and acknowledge or extend at any; nodes die and leave. --------------------

class LeasesInACluster : public PermitsTest {
 protected:
  struct Leased {
    Lease lease;
    MonoTime ends;
    NodeId at = 0;  // to whom its consumer speaks, as long as that node lives
  };
  void SetUp() override {
    PermitsTest::SetUp();
    type = limited_pull(6);
    type.ttr = 20s;
  }
  void lease(NodeId id, std::size_t most) {
    for (std::size_t n = node(id).take(most); n > 0; --n) {
      const Lease lease{++jobs, jobs * 3};
      node(id).flow.leases().enter(1, lease, now + type.ttr);
      leased.push_back({lease, now + type.ttr, id});
    }
  }
  void ack(std::size_t i, NodeId id) {
    node(id).flow.leases().settle({&leased[i].lease, 1});
    leased.erase(leased.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void extend(std::size_t i, NodeId id) {
    leased[i].ends = now + type.ttr;
    leased[i].at = id;
    node(id).flow.leases().extend(1, leased[i].lease, leased[i].ends);
  }
  void look(OneNode& at) {
    for (const Lease& lease : at.flow.leases().next(0, 1000, shards)) {
      const auto found =
          std::ranges::find_if(leased, [&](const Leased& each) { return each.lease.token == lease.token; });
      at.flow.leases().note(lease, found == leased.end() ? std::nullopt : std::optional(found->ends - now), now);
    }
  }
  void pass_and_look(Duration time) {
    for (const MonoTime end = now + time; now < end;) {
      pass(500ms);
      std::erase_if(leased, [&](const Leased& each) { return each.ends <= now; });
      for (auto& [id, each] : nodes) look(*each);
    }
  }
  NodeId any_node() {
    auto it = nodes.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random.below(nodes.size())));
    return it->first;
  }

  Random random{1};
  JobId jobs = 0;
  const std::vector<Shard> shards = [] {
    std::vector<Shard> all(kMaxShards);
    std::iota(all.begin(), all.end(), Shard{0});
    return all;
  }();
  std::vector<Leased> leased;
};

TEST_F(LeasesInACluster, AnAckAtAnotherNodeFreesThePermitSoon) {
  node(1).waiting = 6;
  node(2);
  pass(2s);
  lease(1, 6);
  ASSERT_EQ(leased.size(), 6U);
  while (!leased.empty()) ack(0, 2);
  EXPECT_EQ(node(1).used(), 6U) << "it has not heard of it";
  pass_and_look(1s);
  EXPECT_EQ(node(1).used(), 0U);
}

TEST_F(LeasesInACluster, LeasesOfADeadNodeKeepPermitsWhileTheyAreExtended) {
  node(1).waiting = 6;
  node(2);
  pass(2s);
  lease(1, 6);
  ASSERT_EQ(leased.size(), 6U);
  nodes.erase(1);
  node(2).waiting = 6;
  for (int i = 0; i < 20; ++i) {
    while (leased.size() > 4) leased.pop_back();  // two are given up
    for (std::size_t each = 0; each < 4; ++each) extend(each, 2);
    pass_and_look(5s);
    lease(2, 6);
    ASSERT_LE(leased.size(), 6U) << i;
  }
  EXPECT_EQ(leased.size(), 6U) << "and what was given up leaks nothing";
}

// Node 1 leases all there is and dies; node 2 asks for the permits of those that are extended there, with a fault.
class TakeoverInDoubt : public LeasesInACluster {
 protected:
  void SetUp() override {
    LeasesInACluster::SetUp();
    node(1).waiting = 6;
    node(2).faulty_verb = "take_over_permits";
    pass(2s);
    lease(1, 6);
    ASSERT_EQ(leased.size(), 6U);
    extend_all();
    nodes.erase(1);
  }
  void extend_all() {
    for (std::size_t each = 0; each < leased.size(); ++each)
      if (leased[each].lease.job_id <= 4) extend(each, 2);
  }
  // Others want what is free all the time.
  void outlive() {
    node(2).waiting = node(3).waiting = 6;
    for (int i = 0; i < 100; ++i) {
      if (i % 10 == 0) extend_all();
      pass_and_look(500ms);
      lease(3, 6);
      lease(2, 6);
      ASSERT_LE(leased.size(), 6U) << i;
    }
    EXPECT_EQ(leased.size(), 6U) << "and nothing leaks";
    EXPECT_EQ(running(), 6U);
    EXPECT_EQ(node(2).flow.leases().foreign_leases(1), 0U);
  }
};

TEST_F(TakeoverInDoubt, ATakeoverWithALostReplyIsKept) {
  node(2).loses_answers = true;
  outlive();
}

TEST_F(TakeoverInDoubt, ATakeoverThatWasNotAppliedIsRepeated) {
  node(2).is_late = true;
  for (int i = 0; i < 200 && !node(2).late; ++i) pass(50ms);
  ASSERT_TRUE(node(2).late);
  node(2).is_late = false;
  outlive();
}

TEST_F(TakeoverInDoubt, ALateTakeoverIsIgnoredAfterTheNextRenewal) {
  node(2).is_late = true;
  for (int i = 0; i < 200 && !node(2).late; ++i) pass(50ms);
  ASSERT_TRUE(node(2).late);
  node(2).is_late = false;
  pass(300ms);
  node(2).late();
  outlive();
}

TEST_F(TakeoverInDoubt, ANodeThatLeavesKeepsThePossiblePermits) {
  node(2).loses_answers = true;
  for (int i = 0; i < 200 && node(2).events.failures() == 0; ++i) pass(50ms);
  ASSERT_GT(node(2).events.failures(), 0);
  ASSERT_TRUE(node(2).renewer.leave(now));
  nodes.erase(2);
  node(3).waiting = 6;
  for (int i = 0; i < 20; ++i) {
    pass_and_look(500ms);
    lease(3, 6);
    ASSERT_LE(leased.size(), 6U) << i;
  }
}

TEST_F(LeasesInACluster, ANodeThatLeavesKeepsPermitsForItsLeasesOnly) {
  node(1).waiting = 6;
  pass(2s);
  lease(1, 2);
  node(1).renewer.drain();
  node(1).renewer.step(now);
  ASSERT_TRUE(node(1).renewer.leave(now));
  nodes.erase(1);
  node(2).waiting = 6;
  pass_and_look(1s);
  lease(2, 6);
  EXPECT_EQ(leased.size(), 6U);
  EXPECT_EQ(node(2).used(), 4U);
  pass_and_look(type.ttr + 6s);
  lease(2, 6);
  EXPECT_EQ(leased.size(), 6U);
}

TEST_F(LeasesInACluster, ALeaseLongerThanItsTypesIsStoredFirst) {
  node(1).waiting = 6;
  pass(2s);
  EXPECT_EQ(node(1).flow.take(type, 1, Pace::fresh, now, 100s).n, 0U);
  pass(1s);
  EXPECT_EQ(node(1).flow.take(type, 1, Pace::fresh, now, 100s).n, 1U);
}

TEST_F(LeasesInACluster, NeverMoreAreLeasedThanMaxRunning) {
  NodeId last = 3;
  std::size_t most = 0, starts = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    random = Random(seed);
    nodes.clear();
    leased.clear();
    now += 1h;
    for (NodeId id = last - 2; id <= last; ++id) node(id).waiting = 6;
    for (int i = 0; i < 1500; ++i) {
      pass(50ms);
      std::erase_if(leased, [&](const Leased& each) { return each.ends <= now; });
      for (auto& [id, each] : nodes)
        if (random.below(10) == 0) look(*each);
      const auto before = leased.size();
      for (auto& [id, each] : nodes)
        if (random.below(4) == 0) lease(id, 1 + random.below(6));
      starts += leased.size() - before;
      most = std::max(most, leased.size());
      ASSERT_LE(leased.size(), 6U) << "seed " << seed << " step " << i;
      if (!leased.empty() && random.below(20) == 0) ack(random.below(leased.size()), any_node());
      // Some consumers are slow, and keep what they have.
      if (!leased.empty() && random.below(8) == 0) {
        const std::size_t one = random.below(leased.size());
        extend(one, nodes.contains(leased[one].at) ? leased[one].at : any_node());
      }
      if (random.below(200) == 0) {
        const NodeId gone = any_node();
        if (random.below(2) == 0) {
          node(gone).renewer.drain();
          ASSERT_TRUE(node(gone).renewer.leave(now));
        }
        nodes.erase(gone);
        node(++last).waiting = 6;
      }
    }
    last += 3;
  }
  EXPECT_EQ(most, 6U);
  EXPECT_GT(starts, 2000U);
}

}  // namespace
}  // namespace tocsin
