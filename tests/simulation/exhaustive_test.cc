// Every order of events in small worlds. Where random lives go far, this goes everywhere near the start.
//   TOCSIN_SIM_DEPTH=n      events in one order at most (default: what each world says)
//   TOCSIN_SIM_STATES=n     states at most (default: what each world says)
//   TOCSIN_SIM_JOBS, _NODES, _CALLERS, and the names of kSmallTroubles=n
//                           how many there are, or may happen, in every world that has any (SmallScope)
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <unordered_set>

#include "simulation/seeds.h"
#include "simulation/small_world.h"

namespace tocsin {
namespace {

struct Bounds {
  std::size_t depth, states;
};

// With the numbers that the environment asks for.
SmallScope wanted(SmallScope scope) {
  const auto set = [&](const char* name, int SmallScope::*number) {
    const std::string variable = std::string("TOCSIN_SIM_") + name;
    if (scope.*number > 0)
      scope.*number = static_cast<int>(number_from(variable.c_str(), static_cast<std::uint64_t>(scope.*number)));
  };
  set("JOBS", &SmallScope::jobs);
  set("NODES", &SmallScope::nodes);
  set("CALLERS", &SmallScope::callers);
  for (const auto& [name, number] : kSmallTroubles) set(name, number);
  return scope;
}

// Breadth first: what breaks is told by its shortest order. A state that was seen before, by its hash, is not gone into
// again. From every new state the world is also run to its end without any more trouble.
// Thread: owner only.
class Search {
 public:
  Search(const SmallWorldBugs& bugs, const SmallScope& scope, const Bounds& bounds)
      : bugs_(bugs),
        scope_(wanted(scope)),
        depth_(number_from("TOCSIN_SIM_DEPTH", bounds.depth)),
        most_(number_from("TOCSIN_SIM_STATES", bounds.states)) {}

  void run() {
    visit("");
    Progress progress("states");
    while (!paths_.empty() && broken.empty() && states() < most_) {
      const Path path = std::move(paths_.front());
      paths_.pop_front();
      reached = path.events.size();
      progress.show(static_cast<std::int64_t>(states()), static_cast<std::int64_t>(most_));
      if (reached == depth_) break;
      for (std::size_t event = 0; event < path.choices && broken.empty(); ++event)
        visit(path.events + static_cast<char>(event));
    }
    std::printf("%zu states, every order of %zu events%s\n%s", states(), reached,
                paths_.empty() ? ": there are no others" : "", broken.c_str());
  }

  std::size_t states() const { return seen_.size(); }
  // Two troubles of the world that met in no order of events, in words; empty: each met each other one.
  std::string strangers() const {
    for (std::size_t i = 0; i < kSmallTroubles.size(); ++i)
      for (std::size_t other = 0; other < i; ++other)
        if (is_possible(i) && is_possible(other) && !met_[i][other])
          return std::string(kSmallTroubles[i].name) + " and " + kSmallTroubles[other].name;
    const bool has_both = scope_.cancels > 0 && scope_.reschedules > 0;
    return has_both && !has_cancelled_rescheduled_ ? "a reschedule and a cancel of one job" : "";
  }
  std::string broken;  // the promise, and the events that led there
  std::size_t reached = 0;

 private:
  struct Path {
    std::string events;   // by number
    std::size_t choices;  // events that can come next
  };

  void visit(const std::string& events) {
    SmallWorld world(bugs_, scope_);
    bool has_happened = true;
    for (const char event : events) has_happened = world.perform(static_cast<unsigned char>(event));
    if (!world.broken().empty()) return tell(world.broken(), events);
    if (!has_happened || !seen_.insert(std::hash<std::string>()(world.state())).second) return;
    const SmallTroubles happened = world.happened();
    for (std::size_t i = 0; i < happened.size(); ++i)
      if (happened[i]) met_[i] |= happened;
    has_cancelled_rescheduled_ = has_cancelled_rescheduled_ || world.has_cancelled_rescheduled();
    if (!world.has_ended()) paths_.push_back({events, world.events().size()});
    world.run_out();
    if (!world.broken().empty()) tell(world.broken(), events);
  }

  bool is_possible(std::size_t trouble) const { return scope_.*kSmallTroubles[trouble].number > 0; }

  void tell(const std::string& promise, const std::string& events) {
    broken = promise + '\n';
    SmallWorld again(bugs_, scope_);
    for (const char event : events) {
      broken += "  " + again.events()[static_cast<unsigned char>(event)] + '\n';
      again.perform(static_cast<unsigned char>(event));
    }
  }

  const SmallWorldBugs bugs_;
  const SmallScope scope_;
  const std::size_t depth_, most_;
  std::unordered_set<std::size_t> seen_;
  std::array<SmallTroubles, kSmallTroubles.size()> met_{};
  bool has_cancelled_rescheduled_ = false;
  std::deque<Path> paths_;
};

// One node and REST: whatever happens to two jobs between their claim and their end.
constexpr SmallScope kOneNode{.late_writes = 1, .refusals = 1, .standstills = 1};
constexpr Bounds kOneNodeBounds{16, 15'000};
// The same with one more job and fewer troubles.
constexpr SmallScope kThreeJobs{.jobs = 3, .late_writes = 1};
constexpr Bounds kThreeJobsBounds{16, 7'500};
// One job, and callers who call at once or do not hear what became of their calls: goes further than the others.
constexpr SmallScope kOneJob{
    .jobs = 1, .cancels = 0, .pairs = 1, .reschedules = 2, .lost_answers = 1, .late_writes = 1};
constexpr Bounds kOneJobBounds{16, 5'000};
// Two nodes that both believe that they own everything: writes, callers, and both with one job.
constexpr SmallScope kTwoNodesWrite{
    .nodes = 2, .restarts = 0, .cancels = 0, .reschedules = 0, .late_writes = 1, .standstills = 1};
constexpr SmallScope kTwoNodesAreCalled{.nodes = 2, .restarts = 0, .retries = 0, .lost_answers = 1, .lost_replies = 0};
constexpr SmallScope kTwoNodes{.nodes = 2, .jobs = 1, .late_writes = 1};
constexpr Bounds kTwoNodesBounds{16, 10'000};
// One node and SQL: transactions with one key that stay open for as long as they like, while the scans go on.
constexpr SmallScope kSql{.jobs = 0,
                          .cancels = 0,
                          .reschedules = 0,
                          .retries = 0,
                          .lost_replies = 0,
                          .runs_by_itself = true,
                          .callers = 2,
                          .writers = 1,
                          .seconds = 1,
                          .sweeps = 2};
constexpr Bounds kSqlBounds{11, 15'000};
// Transactions between any two calls of the node: one holds a job's row, another creates a job.
constexpr SmallScope kSqlCancel{.jobs = 1, .lost_answers = 1, .late_writes = 1, .sql_cancels = 1};
constexpr Bounds kSqlCancelBounds{16, 7'500};
constexpr SmallScope kSqlCreate{.jobs = 0, .callers = 1, .sql_cancels = 1};
constexpr Bounds kSqlCreateBounds{24, 7'500};
// Handlers in the database: their claims do not wait for the disk, and the transaction of a call looks its claim up.
constexpr SmallScope kFunctions{.jobs = 1, .late_writes = 1, .standstills = 1, .are_in_database = true};
constexpr Bounds kFunctionsBounds{16, 11'000};

struct ExploredWorld {
  const char* name;
  const SmallScope& scope;
  const Bounds& bounds;
};
constexpr ExploredWorld kSqlWorld{"one node and SQL", kSql, kSqlBounds};
constexpr ExploredWorld kSqlCancelWorld{"a cancel by SQL", kSqlCancel, kSqlCancelBounds};
constexpr ExploredWorld kSqlCreateWorld{"a create by SQL", kSqlCreate, kSqlCreateBounds};
constexpr ExploredWorld kFunctionsWorld{"SQL functions", kFunctions, kFunctionsBounds};
constexpr ExploredWorld kOneJobWorld{"one job", kOneJob, kOneJobBounds};
constexpr ExploredWorld kOneNodeWorld{"one node", kOneNode, kOneNodeBounds};
constexpr ExploredWorld kThreeJobsWorld{"three jobs", kThreeJobs, kThreeJobsBounds};
constexpr ExploredWorld kTwoNodesWriteWorld{"two nodes write", kTwoNodesWrite, kTwoNodesBounds};
constexpr ExploredWorld kTwoNodesAreCalledWorld{"two nodes are called", kTwoNodesAreCalled, kTwoNodesBounds};
constexpr ExploredWorld kTwoNodesWorld{"two nodes", kTwoNodes, kTwoNodesBounds};

// The search has no hint where the mistake is: it tries every world, one after the other.
std::string found_anywhere(const SmallWorldBugs& bugs) {
  for (const ExploredWorld& world :
       {kSqlCancelWorld, kFunctionsWorld, kOneJobWorld, kSqlWorld, kOneNodeWorld, kTwoNodesWorld}) {
    std::printf("%s: ", world.name);
    Search search(bugs, world.scope, world.bounds);
    search.run();
    if (!search.broken.empty()) return search.broken;
  }
  return "";
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kFurther = 1;  // sanitizers are ten times slower
#else
constexpr std::size_t kFurther = 4;
#endif

// `events`: of every order at least. Goes further than the search for planted bugs, which are near.
void keeps_every_promise(const ExploredWorld& world, std::size_t events) {
  Search search({}, world.scope, {world.bounds.depth, kFurther * world.bounds.states});
  search.run();
  EXPECT_EQ(search.broken, "");
  // In a larger world as many states may hold shorter orders only.
  if (kFurther > 1 && wanted(world.scope) == world.scope) {
    EXPECT_GE(search.reached, events);
    EXPECT_EQ(search.strangers(), "");
  }
}

TEST(Exhaustive, KeepsEveryPromiseOfOneNode) { keeps_every_promise(kOneNodeWorld, 7); }
TEST(Exhaustive, KeepsEveryPromiseOfThreeJobs) { keeps_every_promise(kThreeJobsWorld, 7); }
TEST(Exhaustive, KeepsEveryPromiseOfOneJob) { keeps_every_promise(kOneJobWorld, 11); }
TEST(Exhaustive, KeepsEveryPromiseOfTwoNodesThatWrite) { keeps_every_promise(kTwoNodesWriteWorld, 6); }
TEST(Exhaustive, KeepsEveryPromiseOfTwoNodesThatAreCalled) { keeps_every_promise(kTwoNodesAreCalledWorld, 8); }
TEST(Exhaustive, KeepsEveryPromiseOfTwoNodesWithOneJob) { keeps_every_promise(kTwoNodesWorld, 6); }
TEST(Exhaustive, KeepsEveryPromiseOfSqlWheneverItIsCommitted) { keeps_every_promise(kSqlWorld, 11); }
TEST(Exhaustive, KeepsEveryPromiseOfACancelInATransaction) { keeps_every_promise(kSqlCancelWorld, 9); }
TEST(Exhaustive, KeepsEveryPromiseOfACreateInATransaction) { keeps_every_promise(kSqlCreateWorld, 18); }
TEST(Exhaustive, KeepsEveryPromiseOfSqlFunctions) { keeps_every_promise(kFunctionsWorld, 8); }

// Planted: each was in a store or in the engine once.
TEST(Exhaustive, FindsAStartUnderAClaimThatACrashLost) {
  EXPECT_EQ(found_anywhere({.async_claims = true}).substr(0, 2), "I3");
}
TEST(Exhaustive, FindsAJobWhoseClockWasReadBeforeItsTransactionHadAnId) {
  EXPECT_EQ(found_anywhere({.clock_before_id = true}).substr(0, 2), "I1");
}
TEST(Exhaustive, FindsAFunctionThatIsCalledUnderALostClaim) {
  EXPECT_EQ(found_anywhere({.calls_lost_claims = true}).substr(0, 2), "I5");
}
TEST(Exhaustive, FindsOutcomesBlockedByOneRefusedRow) {
  EXPECT_EQ(found_anywhere({.hides_refused_row = true}).substr(0, 4), "live");
}
TEST(Exhaustive, FindsACancelReportedToTwoCallers) {
  EXPECT_EQ(found_anywhere({.store = {.answers_twice = true}}).substr(0, 2), "I3");
}

// Other mistakes of a store.
TEST(Exhaustive, FindsMistakesOfTheStore) {
  constexpr std::pair<bool FakeBugs::*, const char*> kMistakes[] = {
      {&FakeBugs::cancels_running, "I3"}, {&FakeBugs::claims_any_status, "I4"},
      {&FakeBugs::claims_early, "I2"},    {&FakeBugs::finish_ignores_token, "I5"},
      {&FakeBugs::ignores_locks, "I3"},   {&FakeBugs::shows_uncommitted, "I1"}};
  for (const auto& [mistake, promise] : kMistakes) {
    SmallWorldBugs bugs;
    bugs.store.*mistake = true;
    EXPECT_EQ(found_anywhere(bugs).substr(0, 2), promise);
  }
}

}  // namespace
}  // namespace tocsin
