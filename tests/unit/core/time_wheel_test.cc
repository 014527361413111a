#include "core/time_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kWheelStart{1'767'225'600s};  // 2026-01-01

Candidate job_at(JobId id, WallTime fire_at) { return {id, 1, fire_at}; }

std::vector<JobId> ids(const std::vector<Candidate>& jobs) {
  std::vector<JobId> out;
  for (const Candidate& job : jobs) out.push_back(job.job_id);
  return out;
}

std::vector<JobId> advance(TimeWheel& wheel, WallTime now) {
  std::vector<Candidate> due;
  wheel.advance(now, due);
  return ids(due);
}

// What the wheel promises, kept the slow and obvious way.
class Model {
 public:
  Model(Duration tick, Duration lookahead, std::size_t capacity, WallTime now)
      : tick_(tick.count()), lookahead_(lookahead), capacity_(capacity), at_(floor_tick(now)) {}

  bool must_refuse() const { return jobs_.size() >= capacity_; }
  bool must_accept(const Candidate& job) const { return !must_refuse() && job.fire_at <= position() + lookahead_; }
  void add(const Candidate& job) {
    const std::int64_t tick = -floor_tick(-job.fire_at.time_since_epoch().count());
    jobs_.emplace(std::max(tick, at_ + 1), job);
  }
  std::multimap<std::int64_t, Candidate> advance(WallTime now) {
    std::multimap<std::int64_t, Candidate> due;
    at_ = std::max(at_, floor_tick(now));
    while (!jobs_.empty() && jobs_.begin()->first <= at_) due.insert(jobs_.extract(jobs_.begin()));
    return due;
  }
  // Puts every entry anew, as after a step back; those in `dropped` are gone.
  void rewind(WallTime now, const std::set<JobId>& dropped) {
    at_ = floor_tick(now);
    const auto old = std::exchange(jobs_, {});
    for (const auto& [tick, job] : old) {
      if (!dropped.contains(job.job_id)) add(job);
    }
  }
  std::optional<WallTime> next() const {
    if (jobs_.empty()) return {};
    return WallTime(Duration(jobs_.begin()->first * tick_));
  }
  WallTime position() const { return WallTime(Duration(at_ * tick_)); }
  const std::multimap<std::int64_t, Candidate>& jobs() const { return jobs_; }

 private:
  std::int64_t floor_tick(std::int64_t us) const { return us / tick_ - (us % tick_ < 0 ? 1 : 0); }
  std::int64_t floor_tick(WallTime time) const { return floor_tick(time.time_since_epoch().count()); }

  const std::int64_t tick_;
  const Duration lookahead_;
  const std::size_t capacity_;
  std::int64_t at_;
  std::multimap<std::int64_t, Candidate> jobs_;
};

// One wheel beside its model, driven by chance.
class Trial {
 public:
  explicit Trial(std::uint64_t seed)
      : random_(seed),
        tick_(pick<Duration>({1us, 7us, 500us, 1ms, 3333us})),
        lookahead_(tick_ * between(1, 300) + Duration(between(0, tick_.count() - 1))),
        capacity_(static_cast<std::size_t>(between(1, 200))),
        now_(pick<WallTime>({kWheelStart, WallTime(0us), WallTime(-123456789us), kWheelStart + 777us})),
        wheel_(tick_, lookahead_, capacity_, now_),
        model_(tick_, lookahead_, capacity_, now_) {}

  void step() {
    const auto dice = between(0, 99);
    if (dice < 70) {
      add();
    } else if (dice < 97) {
      advance();
    } else {
      rewind();
    }
    ASSERT_EQ(wheel_.size(), model_.jobs().size());
    ASSERT_LE(wheel_.size(), capacity_);
    ASSERT_EQ(wheel_.next(), model_.next());
    ASSERT_EQ(wheel_.position(), model_.position());
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(between(0, std::ssize(from) - 1))];
  }

  void add() {
    const WallTime position = model_.position();
    const WallTime fire_at = pick<WallTime>({
        position + Duration(between(0, lookahead_.count())),
        position + tick_ * between(0, lookahead_ / tick_),  // exactly on a tick
        position + tick_ * between(0, lookahead_ / tick_) + 1us,
        position + lookahead_,                    // as far as it must reach
        position + lookahead_ * between(1, 8),    // likely too far
        position + tick_ * (between(1, 8) << 6),  // whole rounds of a ring
        now_ - Duration(between(0, 10'000'000)),  // overdue
    });
    const Candidate job = job_at(++last_id_, fire_at);
    const bool is_added = wheel_.add(job);
    ASSERT_TRUE(is_added || !model_.must_accept(job)) << "refused although within reach";
    ASSERT_FALSE(is_added && model_.must_refuse()) << "more than its capacity";
    if (is_added) model_.add(job);
  }

  void advance() {
    const auto next = model_.next();
    now_ = pick<WallTime>({
        now_ + Duration(between(0, tick_.count() * 3)), now_ + Duration(between(0, lookahead_.count())),
        now_ + lookahead_ * between(1, 50),              // a long sleep
        now_ - Duration(between(0, tick_.count() * 5)),  // the estimate of the time wobbles
        next.value_or(now_),                             // the first instant with something to do
        next.value_or(now_) - 1us,                       // one too early
    });
    std::vector<Candidate> due;
    wheel_.advance(now_, due);
    auto wanted = model_.advance(now_);
    ASSERT_EQ(due.size(), wanted.size());
    // The same entries tick by tick; the order within a tick is free.
    for (auto it = wanted.begin(); it != wanted.end();) {
      const auto end = wanted.upper_bound(it->first);
      std::multiset<JobId> in_model, in_wheel;
      for (; it != end; ++it) {
        in_model.insert(it->second.job_id);
        in_wheel.insert(due[in_wheel_taken_ + in_wheel.size()].job_id);
      }
      in_wheel_taken_ += in_wheel.size();
      ASSERT_EQ(in_wheel, in_model);
    }
    in_wheel_taken_ = 0;
    for (const Candidate& job : due) ASSERT_GE(now_, job.fire_at) << "came out early";
  }

  void rewind() {
    now_ -= pick<Duration>({Duration(between(0, lookahead_.count())), lookahead_ * between(1, 20), tick_ * 64});
    std::vector<Candidate> dropped;
    wheel_.rewind(now_, dropped);
    std::set<JobId> gone;
    for (const Candidate& job : dropped) {
      gone.insert(job.job_id);
      ASSERT_GT(job.fire_at, wheel_.position() + lookahead_) << "dropped although within reach";
    }
    model_.rewind(now_, gone);
  }

  std::mt19937_64 random_;
  const Duration tick_;
  const Duration lookahead_;
  const std::size_t capacity_;
  WallTime now_;
  TimeWheel wheel_;
  Model model_;
  JobId last_id_ = 0;
  std::size_t in_wheel_taken_ = 0;
};

TEST(TimeWheel, AgreesWithItsModelForAnySequence) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Trial trial(seed);
    for (int i = 0; i < 1000; ++i) {
      trial.step();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", operation " << i;
    }
  }
}

TEST(TimeWheel, GivesAnEntryAtTheEndOfItsTickAndNotBefore) {
  TimeWheel wheel(1ms, 5s, 10, kWheelStart);
  ASSERT_TRUE(wheel.add(job_at(1, kWheelStart + 10ms)));
  ASSERT_TRUE(wheel.add(job_at(2, kWheelStart + 10ms + 1us)));
  EXPECT_EQ(wheel.next(), kWheelStart + 10ms);
  EXPECT_TRUE(advance(wheel, kWheelStart + 10ms - 1us).empty());
  EXPECT_EQ(advance(wheel, kWheelStart + 10ms), std::vector<JobId>{1});
  EXPECT_TRUE(advance(wheel, kWheelStart + 11ms - 1us).empty());
  EXPECT_EQ(advance(wheel, kWheelStart + 11ms), std::vector<JobId>{2});
  EXPECT_EQ(wheel.next(), std::nullopt);
}

TEST(TimeWheel, GivesOverdueEntriesWithTheNextTick) {
  TimeWheel wheel(1ms, 5s, 10, kWheelStart);
  ASSERT_TRUE(wheel.add(job_at(1, kWheelStart - 24h)));
  EXPECT_TRUE(advance(wheel, kWheelStart).empty());
  EXPECT_EQ(advance(wheel, kWheelStart + 1ms), std::vector<JobId>{1});
}

TEST(TimeWheel, GivesEverythingInOrderAfterAJumpOverManyRounds) {
  TimeWheel wheel(1ms, 5s, 100, kWheelStart);
  for (JobId id = 1; id <= 50; ++id) ASSERT_TRUE(wheel.add(job_at(id, kWheelStart + id * 100ms)));
  const auto due = advance(wheel, kWheelStart + 24h);
  EXPECT_EQ(due.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(due));
  EXPECT_EQ(wheel.size(), 0U);
}

TEST(TimeWheel, RefusesBeyondItsCapacityAndTakesAgainBelowIt) {
  TimeWheel wheel(1ms, 5s, 2, kWheelStart);
  EXPECT_TRUE(wheel.add(job_at(1, kWheelStart + 1ms)));
  EXPECT_TRUE(wheel.add(job_at(2, kWheelStart + 2ms)));
  EXPECT_FALSE(wheel.add(job_at(3, kWheelStart + 3ms)));
  EXPECT_EQ(advance(wheel, kWheelStart + 1ms), std::vector<JobId>{1});
  EXPECT_TRUE(wheel.add(job_at(3, kWheelStart + 3ms)));
  EXPECT_EQ(advance(wheel, kWheelStart + 3ms), (std::vector<JobId>{2, 3}));
}

TEST(TimeWheel, RefusesEntriesAWholeRoundAhead) {
  TimeWheel wheel(1ms, 62ms, 10, kWheelStart);  // a ring of 64 slots
  EXPECT_TRUE(wheel.add(job_at(1, kWheelStart + 63ms)));
  EXPECT_FALSE(wheel.add(job_at(2, kWheelStart + 64ms)));
  EXPECT_FALSE(wheel.add(job_at(3, kWheelStart + 128ms)));
  EXPECT_EQ(advance(wheel, kWheelStart + 63ms), std::vector<JobId>{1});
}

TEST(TimeWheel, TakesTheFirstInstantAndRefusesTheLast) {
  TimeWheel wheel(1us, 5s, 10, kWheelStart);
  EXPECT_TRUE(wheel.add(job_at(1, WallTime::min())));
  EXPECT_FALSE(wheel.add(job_at(2, WallTime::max())));
  EXPECT_EQ(advance(wheel, kWheelStart + 1us), std::vector<JobId>{1});
}

TEST(TimeWheel, KeepsTheTimesOfItsEntriesWhenTheClockIsSetBack) {
  TimeWheel wheel(1ms, 62ms, 10, kWheelStart);
  ASSERT_TRUE(wheel.add(job_at(1, kWheelStart + 5ms)));
  ASSERT_TRUE(wheel.add(job_at(2, kWheelStart + 60ms)));
  std::vector<Candidate> dropped;
  wheel.rewind(kWheelStart - 10ms, dropped);
  EXPECT_EQ(ids(dropped), std::vector<JobId>{2}) << "out of reach now";
  EXPECT_TRUE(advance(wheel, kWheelStart + 5ms - 1us).empty());
  EXPECT_EQ(advance(wheel, kWheelStart + 5ms), std::vector<JobId>{1});
}

}  // namespace
}  // namespace tocsin
