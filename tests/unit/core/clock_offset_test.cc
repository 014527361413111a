#include "core/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kStart{1'767'225'600s};

MonoTime mono(Duration since_zero) { return MonoTime(since_zero); }

// A database whose clock runs at its own speed beside ours.
class Database {
 public:
  Database(WallTime at_zero, double drift_ppm) : base_(at_zero), speed_(1 + drift_ppm / 1e6) {}
  WallTime at(MonoTime local) const { return base_ + elapsed(local - origin_); }
  void step(MonoTime local, Duration by) {
    base_ = at(local) + by;
    origin_ = local;
  }

 private:
  Duration elapsed(Duration local) const {
    return Duration(static_cast<std::int64_t>(static_cast<double>(local.count()) * speed_));
  }
  WallTime base_;
  MonoTime origin_{};
  double speed_;
};

// Samples as a node takes them: round trips of any length and shape.
class Sampler {
 public:
  Sampler(std::uint64_t seed, Database& database, ClockOffset& offset)
      : random_(seed), database_(database), offset_(offset) {}

  // Takes one sample and checks what it promised before the next.
  void sample(Duration ahead_at_most = 0us) {
    const MonoTime asked = now_ + between(1ms, 1s);
    const Duration there = round_trip(), back = round_trip();
    const WallTime read = database_.at(asked + there);
    now_ = asked + there + back;
    offset_.sample(asked, now_, read);
    ASSERT_LE(offset_.at_least(now_), database_.at(now_) + ahead_at_most) << "ahead of the database's clock";
    ASSERT_LE(database_.at(now_) - offset_.at_least(now_), longest_round_trip_ + kWorthLost)
        << "behind by more than a round trip";
  }
  MonoTime now() const { return now_; }

 private:
  static constexpr Duration kWorthLost =
      10ms;  // by what ages and drifts within the samples kept: ten seconds, 1,000 ppm

  Duration between(Duration low, Duration high) {
    return Duration(std::uniform_int_distribution<std::int64_t>(low.count(), high.count())(random_));
  }
  Duration round_trip() {
    const Duration way = between(0us, 9us) == 0us ? between(0us, 400ms) : between(20us, 900us);
    longest_round_trip_ = std::max(longest_round_trip_, 2 * way);
    return way;
  }

  std::mt19937_64 random_;
  Database& database_;
  ClockOffset& offset_;
  MonoTime now_{};
  Duration longest_round_trip_{0};
};

TEST(ClockOffset, IsUnknownBeforeTheFirstSample) {
  ClockOffset offset;
  EXPECT_FALSE(offset.is_known());
  EXPECT_TRUE(offset.sample(mono(1s), mono(1s), kStart));
  EXPECT_TRUE(offset.is_known());
}

TEST(ClockOffset, CountsFromAfterTheReply) {
  ClockOffset offset;
  offset.sample(mono(100ms), mono(150ms), kStart);
  EXPECT_EQ(offset.at_least(mono(150ms)), kStart);
  EXPECT_EQ(offset.at_least(mono(250ms)), kStart + 100ms);
  EXPECT_EQ(offset.uncertainty(), 50ms);
}

TEST(ClockOffset, WhenIsTheInstantAtWhichTheTimeIsReached) {
  ClockOffset offset;
  offset.sample(mono(100ms), mono(150ms), kStart);
  const WallTime time = kStart + 3s;
  EXPECT_EQ(offset.at_least(offset.when(time)), time);
  EXPECT_LT(offset.at_least(offset.when(time) - 1us), time);
}

TEST(ClockOffset, ASlowRoundTripDoesNotSpoilAQuickOne) {
  ClockOffset offset;
  offset.sample(mono(0ms), mono(1ms), kStart);
  EXPECT_TRUE(offset.sample(mono(10ms), mono(2s), kStart + 11ms));
  EXPECT_LE(offset.at_least(mono(2s)), kStart + 1999ms);
  EXPECT_GE(offset.at_least(mono(2s)), kStart + 1998ms) << "a bound loses little with its age";
}

TEST(ClockOffset, IsNeverAheadOfAnEvenClockWhateverTheRoundTrips) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Database database(kStart, 0);
    ClockOffset offset;
    Sampler sampler(seed, database, offset);
    for (int i = 0; i < 200; ++i) {
      sampler.sample();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
  }
}

TEST(ClockOffset, IsNeverAheadOfAClockThatDriftsAsCrystalsDo) {
  for (const double ppm : {-90.0, -50.0, -1.0, 1.0, 50.0, 90.0}) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      Database database(kStart, ppm);
      ClockOffset offset;
      Sampler sampler(seed, database, offset);
      for (int i = 0; i < 300 && !HasFatalFailure(); ++i) sampler.sample();
      ASSERT_FALSE(HasFatalFailure()) << ppm << " ppm, seed " << seed;
    }
  }
}

TEST(ClockOffset, IsAheadByMillisecondsAtMostOfAClockThatIsOut) {
  for (const double ppm : {-500.0, 500.0}) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      Database database(kStart, ppm);
      ClockOffset offset;
      Sampler sampler(seed, database, offset);
      for (int i = 0; i < 300 && !HasFatalFailure(); ++i) sampler.sample(5ms);
      ASSERT_FALSE(HasFatalFailure()) << ppm << " ppm, seed " << seed;
    }
  }
}

TEST(ClockOffset, RecoversFromAStepBackWithOneSampleAndSaysSo) {
  ClockOffset offset;
  for (int i = 0; i < 20; ++i) offset.sample(mono(i * 1s), mono(i * 1s + 1ms), kStart + i * 1s);
  EXPECT_FALSE(offset.sample(mono(20s), mono(20s + 1ms), kStart + 20s - 1h));
  EXPECT_EQ(offset.at_least(mono(20s + 1ms)), kStart + 20s - 1h);
  EXPECT_TRUE(offset.sample(mono(21s), mono(21s + 1ms), kStart + 21s - 1h));
}

TEST(ClockOffset, FollowsAStepForwardWithOneSample) {
  ClockOffset offset;
  offset.sample(mono(0s), mono(1ms), kStart);
  EXPECT_TRUE(offset.sample(mono(1s), mono(1s + 1ms), kStart + 1h));
  EXPECT_EQ(offset.at_least(mono(1s + 1ms)), kStart + 1h);
}

TEST(ClockOffset, IsRightAgainAfterAnyStepOfTheDatabasesClock) {
  std::mt19937_64 random(7);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Database database(kStart, 0);
    ClockOffset offset;
    Sampler sampler(seed, database, offset);
    for (int i = 0; i < 50; ++i) {
      const auto ms = std::uniform_int_distribution<int>(-3'600'000, 3'600'000)(random);
      // A step back within one round trip cannot be told from a slow reply, until the samples before it are forgotten.
      if (std::abs(ms) < 2000) continue;
      database.step(sampler.now(), ms * 1ms);
      for (int j = 0; j < 10; ++j) sampler.sample();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tocsin
