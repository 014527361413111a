// That the checker reports a history which breaks the promise `fair`, and none that keeps it: without an engine.
#include "simulation/checker.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 1, kOnTheirWay = 2;

// A database whose rows the tests claim in an order of their own. Types: 1 and 2 instant, 3 with a handler, 4 pulled,
// 5 with a handler and a limit.
class CheckerFairness : public ::testing::Test {
 protected:
  CheckerFairness() {
    std::vector<BizType> types(5);
    const char* const kinds[] = {"noop", "noop", "sim", "pull", "sim"};
    for (std::size_t i = 0; i < types.size(); ++i) {
      types[i].type_id = static_cast<TypeId>(i + 1);
      types[i].name = "type." + std::to_string(i + 1);
      types[i].handler_kind = kinds[i];
    }
    types.back().max_running = 2;
    data().on_change = [this](const FakeDatabase::Change& change) { checker_.on_change(0, change); };
    data().mirror_types(types);
    checker_.on_types(types, 6s);
    Checker::Quiet quiet;
    quiet.on_their_way = kOnTheirWay;
    quiet.batch = kBatch;
    quiet.slots = kSlots;
    checker_.quiet_begins(quiet);
  }

  static constexpr std::size_t kSlots = 8;
  FakeDatabase& data() { return databases_.control().data; }

  // Due now, and older than all that is created later.
  JobId create(TypeId type) {
    scheduler_.run_until(scheduler_.now() + 1ms);
    NewJob job;
    job.type_id = type;
    job.biz_id = "order-" + std::to_string(++last_biz_);
    job.max_attempts = 3;
    job.when = {{}, Duration(0)};
    return data().create({job}, CreateMode::all_or_nothing, data().now())->front().job_id;
  }

  // `n` jobs of an instant type, one statement each.
  void fire(int n, TypeId type = 2, const std::string& node = "node") {
    for (int i = 0; i < n; ++i) {
      const JobId job = create(type);
      scheduler_.run_until(scheduler_.now() + 1ms);
      data().fire({{job, type, data().find(job)->fire_at}}, node, data().now());
    }
  }

  // Claims a job of type 3 or 4: it runs until `finish`.
  ClaimedJob claim(JobId job) {
    scheduler_.run_until(scheduler_.now() + 1ms);
    const Job row = *data().find(job);
    return data().claim({{job, row.type_id, row.fire_at}}, {10s}, {++seed_, "node", true}, data().now()).won.front();
  }

  bool is_fair() const { return checker_.failures().empty(); }
  bool is_unfair() const { return !is_fair() && checker_.failures().front().starts_with("fair"); }

  // More than the bound for one waiting type beside one other: in memory four turns of up to two forms.
  static constexpr int kTooMany = kOnTheirWay + 4 * 2 * 2 * kBatch + 1;

  Random random_{1};
  Scheduler scheduler_{1};
  Trace trace_{false};
  SimDatabases databases_{{0}, scheduler_, random_, trace_};
  Checker checker_{scheduler_, trace_, databases_, false};
  int last_biz_ = 0;
  std::int64_t seed_ = 0;
};

TEST_F(CheckerFairness, ReportsAJobThatANodeWasToldOf) {
  checker_.on_hinted("node", create(1));
  fire(kTooMany);
  EXPECT_TRUE(is_unfair());
}

// It scans other shards, and may be faster.
TEST_F(CheckerFairness, CountsNoStartsOfANodeThatDoesNotKnowTheJob) {
  checker_.on_hinted("node", create(1));
  fire(kTooMany, 2, "another");
  EXPECT_TRUE(is_fair());
}

TEST_F(CheckerFairness, ReportsAJobThatAScanHasRead) {
  checker_.on_read("node", create(1));
  fire(kTooMany);
  EXPECT_TRUE(is_unfair());
}

TEST_F(CheckerFairness, ReadingAJobAgainDoesNotBeginItsCountAnew) {
  const JobId job = create(1);
  for (int i = 0; i < kTooMany; ++i) checker_.on_read("node", job), fire(1);
  EXPECT_TRUE(is_unfair());
}

TEST_F(CheckerFairness, SaysNothingWithinTheBound) {
  checker_.on_read("node", create(1));
  fire(kOnTheirWay + 4 * 2 * kBatch);
  EXPECT_TRUE(is_fair());
}

TEST_F(CheckerFairness, SaysNothingOfAJobThatNoNodeKnowsOf) {
  create(1);
  fire(kTooMany);
  EXPECT_TRUE(is_fair());
}

TEST_F(CheckerFairness, SaysNothingOfJobsThatWereDueBefore) {
  std::vector<JobId> older;
  for (int i = 0; i < kTooMany; ++i) older.push_back(create(2));
  checker_.on_read("node", create(1));
  for (const JobId job : older) data().fire({{job, 2, data().find(job)->fire_at}}, "node", data().now());
  EXPECT_TRUE(is_fair());
}

TEST_F(CheckerFairness, ReportsAJobWhoseTypeRunsWithinItsPartOfTheSlots) {
  claim(create(3));
  checker_.on_read("node", create(3));
  fire(kTooMany);
  EXPECT_TRUE(is_unfair());
}

TEST_F(CheckerFairness, SaysNothingOfAJobWhoseTypeHasItsPartOfTheSlots) {
  for (std::size_t i = 0; i < kSlots / 2; ++i) claim(create(3));
  checker_.on_read("node", create(3));
  fire(kTooMany);
  EXPECT_TRUE(is_fair());
}

TEST_F(CheckerFairness, ReportsAPullJobWhileAConsumerWaits) {
  checker_.on_read("node", create(4));
  checker_.on_poll("node", 4);
  fire(kTooMany);
  EXPECT_TRUE(is_unfair());
}

TEST_F(CheckerFairness, SaysNothingOfAPullJobWithoutAConsumerAtANodeThatKnowsIt) {
  checker_.on_read("node", create(4));
  checker_.on_poll("another", 4);
  checker_.on_poll_over(checker_.on_poll("node", 4));
  fire(kTooMany);
  EXPECT_TRUE(is_fair());
}

TEST_F(CheckerFairness, ReportsAJobWithALimitWhileANodeThatKnowsItHasAPermit) {
  checker_.ask_of_limits([](const std::string& node, const BizType&) { return node == "node"; });
  checker_.on_read("node", create(5));
  fire(kTooMany);
  EXPECT_TRUE(is_unfair());
}

TEST_F(CheckerFairness, SaysNothingOfAJobWithALimitWhileOnlyAnotherNodeHasAPermit) {
  checker_.ask_of_limits([](const std::string& node, const BizType&) { return node == "another"; });
  checker_.on_read("node", create(5));
  fire(kTooMany);
  EXPECT_TRUE(is_fair());
}

}  // namespace
}  // namespace tocsin
