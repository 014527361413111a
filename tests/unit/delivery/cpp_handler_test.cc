#include "delivery/cpp_handler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <stdexcept>

#include "support/manual_clock.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class CppHandlerTest : public testing::Test {
 protected:
  std::future<Outcome> begin(CppHandler function, Duration start_within = 15s) {
    ClaimedJob claimed;
    claimed.job.job_id = 7;
    claimed.lease_deadline = clock_.now() + 30s;
    claimed.start_by = clock_.now() + start_within;
    auto promise = std::make_shared<std::promise<Outcome>>();
    runner_.handler_for(std::make_shared<const CppHandler>(std::move(function)))
        ->start(claimed, [promise](Outcome outcome) {
          promise->set_value(std::move(outcome));  // throws when called twice
        });
    return promise->get_future();
  }

  ManualClock clock_;
  WorkerPool workers_{1, 2};
  CppRunner runner_{workers_, clock_};
};

TEST_F(CppHandlerTest, TakesTheOutcomeOfTheFunction) {
  EXPECT_EQ(begin([](const Job& job) { return Outcome::dead(std::to_string(job.job_id)); }).get().message, "7");
  EXPECT_EQ(begin([](const Job&) { return Outcome::done(); }).get().kind, Outcome::Kind::done);
}

TEST_F(CppHandlerTest, JobsBehindABlockedHandlerAreReleasedInTime) {
  std::promise<void> begun, unblock;
  auto blocking = begin([&](const Job&) {
    begun.set_value();
    unblock.get_future().wait();
    return Outcome::done();
  });
  begun.get_future().wait();
  std::atomic<bool> is_called = false;
  auto waiting = begin([&](const Job&) {
    is_called = true;
    return Outcome::done();
  });
  clock_.advance(15s);
  EXPECT_EQ(waiting.get().kind, Outcome::Kind::not_started);
  unblock.set_value();
  EXPECT_EQ(blocking.get().kind, Outcome::Kind::done);
  EXPECT_EQ(begin([](const Job&) { return Outcome::done(); }).get().kind, Outcome::Kind::done);
  EXPECT_FALSE(is_called);
}

// The sanitizer of addresses sees it when start() still reads the job.
TEST_F(CppHandlerTest, AJobMayEndWhileItIsStarted) {
  const auto handler =
      runner_.handler_for(std::make_shared<const CppHandler>([](const Job&) { return Outcome::done(); }));
  for (int i = 0; i < 300; ++i) {
    auto job = std::make_shared<ClaimedJob>();
    job->job.biz_id = std::string(100, 'x');
    job->start_by = clock_.now();  // it ends as soon as it is known
    std::promise<Outcome::Kind> kind;
    const ClaimedJob& started = *job;
    handler->start(started, [owner = std::move(job), &kind](const Outcome& outcome) { kind.set_value(outcome.kind); });
    EXPECT_EQ(kind.get_future().get(), Outcome::Kind::not_started);
  }
}

TEST_F(CppHandlerTest, RetriesFunctionsThatThrow) {
  const Outcome outcome = begin([](const Job&) -> Outcome { throw std::runtime_error("no such order"); }).get();
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_EQ(outcome.message, "no such order");
  EXPECT_EQ(begin([](const Job&) -> Outcome { throw 7; }).get().kind, Outcome::Kind::retry);
}

TEST_F(CppHandlerTest, RetriesFunctionsThatRunOutOfMemory) {
  // Thrown by hand, for sanitizers end the process in its place.
  const Outcome outcome = begin([](const Job&) -> Outcome { throw std::bad_alloc(); }).get();
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_NE(outcome.message, "");
}

TEST_F(CppHandlerTest, IgnoresAFunctionThatClaimsItsOutcomeIsWritten) {
  Outcome lie;
  lie.is_written = true;
  EXPECT_FALSE(begin([&](const Job&) { return lie; }).get().is_written);
}

TEST_F(CppHandlerTest, StartsNothingTooLate) {
  bool has_run = false;
  const auto function = [&](const Job&) {
    has_run = true;
    return Outcome::done();
  };
  EXPECT_EQ(begin(function, 0s).get().kind, Outcome::Kind::not_started);
  EXPECT_FALSE(has_run);
}

TEST_F(CppHandlerTest, HasCapacityForManyQuickJobsAndForFewSlowOnes) {
  const auto room_after = [&](Duration each) {
    const auto handler = runner_.handler_for(std::make_shared<const CppHandler>([&, each](const Job&) {
      clock_.advance(each);
      return Outcome::done();
    }));
    for (int i = 0; i < 100; ++i) {
      std::promise<void> ended;
      ClaimedJob claimed;
      claimed.start_by = clock_.now() + 1s;
      handler->start(claimed, [&](Outcome) { ended.set_value(); });
      ended.get_future().wait();
    }
    return handler->pool()->capacity();
  };
  const std::size_t slow = room_after(10s), medium = room_after(10ms), quick = room_after(10us);
  EXPECT_EQ(slow, 1U);
  EXPECT_NEAR(static_cast<double>(medium), 20, 3);
  EXPECT_EQ(quick, 256U);
}

TEST_F(CppHandlerTest, StartsNothingWhenTheQueueIsFull) {
  std::promise<void> begun, release;
  auto running = begin([&](const Job&) {
    begun.set_value();
    release.get_future().wait();
    return Outcome::done();
  });
  begun.get_future().wait();
  auto first = begin([](const Job&) { return Outcome::done(); });
  auto second = begin([](const Job&) { return Outcome::done(); });
  const Outcome third = begin([](const Job&) { return Outcome::done(); }).get();
  EXPECT_EQ(third.kind, Outcome::Kind::not_started);
  EXPECT_TRUE(third.retry_after);
  release.set_value();
  EXPECT_EQ(running.get().kind, Outcome::Kind::done);
  EXPECT_EQ(first.get().kind, Outcome::Kind::done);
  EXPECT_EQ(second.get().kind, Outcome::Kind::done);
}

TEST_F(CppHandlerTest, EndsOverrunningFunctionsAtAStopAndDropsLateOutcomes) {
  auto begun = std::make_shared<std::promise<void>>();
  auto release = std::make_shared<std::promise<void>>();
  std::promise<void> ended;
  auto over = ended.get_future();
  auto running = begin(
      [begun, release, until_gone = std::shared_ptr<void>(nullptr, [&](void*) { ended.set_value(); })](const Job&) {
        begun->set_value();
        release->get_future().wait();
        return Outcome::done();
      });
  begun->get_future().wait();
  auto waiting = begin([](const Job&) { return Outcome::done(); });
  EXPECT_FALSE(workers_.stop(0s));
  runner_.stop();
  EXPECT_EQ(running.get().message, "shutting down");
  EXPECT_EQ(waiting.get().kind, Outcome::Kind::not_started) << "it never began: the attempt must not count";
  EXPECT_EQ(begin([](const Job&) { return Outcome::done(); }).get().kind, Outcome::Kind::not_started);
  release->set_value();
  over.wait();  // a second call of its finish would have thrown by now
}

TEST(CppHandlers, FindsWhatWasAdded) {
  CppHandlers handlers;
  EXPECT_EQ(handlers.find("order.unpaid"), nullptr);
  EXPECT_TRUE(handlers.add("order.unpaid", [](const Job&) { return Outcome::dead("first"); }));
  EXPECT_FALSE(handlers.add("order.unpaid", [](const Job&) { return Outcome::dead("second"); }));
  ASSERT_NE(handlers.find("order.unpaid"), nullptr);
  EXPECT_EQ((*handlers.find("order.unpaid"))(Job{}).message, "first");
}

}  // namespace
}  // namespace tocsin
