#include "core/day_witness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tocsin {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

constexpr sys_days kToday{std::chrono::year(2026) / 3 / 10};
constexpr MonoTime kStarted{std::chrono::hours(5)};

// Kept for seven days, with finishes on so many later ones.
PastDay used(sys_days day, int later) { return {day, 7, true, later}; }

TEST(DayWitness, AFreshProcessTrustsTheFinishesThatAreStored) {
  DayWitness witness;
  witness.see(kToday, kStarted);
  EXPECT_TRUE(witness.confirms(used(kToday - days(8), 8), kStarted));
  EXPECT_FALSE(witness.confirms(used(kToday - days(8), 7), kStarted)) << "today may have just begun";
}

TEST(DayWitness, AWrongYearDropsOnlyTheNextDay) {
  DayWitness witness;
  witness.see(kToday, kStarted);
  const sys_days wrong = kToday + days(366);
  witness.see(wrong, kStarted + std::chrono::minutes(1));
  // Finishes of the wrong day are stored by now.
  const MonoTime later = kStarted + std::chrono::minutes(2);
  for (int age = 0; age < 7; ++age) EXPECT_FALSE(witness.confirms(used(kToday - days(age), age + 1), later)) << age;
  EXPECT_TRUE(witness.confirms(used(kToday - days(7), 8), later)) << "its time comes at midnight";
  EXPECT_FALSE(witness.confirms({kToday, 1, true, 1}, later)) << "today, where history is kept for a day";
}

// A clock that steps every few minutes: the process has counted the first wrong date, and counts one more.
TEST(DayWitness, ARunningProcessCountsOneMoreWrongDate) {
  DayWitness witness;
  witness.see(kToday, kStarted);
  for (int wrong = 1; wrong <= 20; ++wrong) {
    const MonoTime now = kStarted + std::chrono::minutes(10 * wrong);
    witness.see(kToday + days(366 * wrong), now);
    for (int age = 0; age <= 7; ++age)
      EXPECT_EQ(witness.confirms(used(kToday - days(age), age + wrong), now), age + std::min(wrong, 2) > 7)
          << age << " days after " << wrong << " wrong dates";
  }
  const MonoTime later = kStarted + days(3) + std::chrono::hours(1);  // a day of the age 3 has the age 6 now
  EXPECT_TRUE(witness.confirms(used(kToday - days(3), 26), later));
  EXPECT_FALSE(witness.confirms(used(kToday - days(2), 25), later));
}

// The width of the window: each wrong date that is stored before a process asks counts for one real day.
TEST(DayWitness, SeveralWrongDatesDropThatManyNextDays) {
  constexpr int kKept = 7;
  for (int wrong = 0; wrong <= 3; ++wrong) {
    DayWitness witness;
    witness.see(kToday, kStarted);
    for (int year = 1; year <= wrong; ++year)
      witness.see(kToday + days(366 * year), kStarted + std::chrono::hours(year));
    for (int age = 0; age <= kKept + 1; ++age)
      EXPECT_EQ(witness.confirms(used(kToday - days(age), age + wrong), kStarted + days(1)), age > kKept - wrong)
          << age << " days after " << wrong << " wrong dates";
  }
}

TEST(DayWitness, AProcessThatBeganUnderTheWrongYearDropsNothingEither) {
  DayWitness witness;
  witness.see(kToday + days(365), kStarted);
  EXPECT_FALSE(witness.confirms(used(kToday - days(2), 3), kStarted));
  EXPECT_FALSE(witness.confirms(used(kToday - days(2), 3), kStarted + days(6)));
}

TEST(DayWitness, DaysOlderThanALongRunningProcessMayBeDropped) {
  DayWitness witness;
  witness.see(kToday, kStarted);
  EXPECT_FALSE(witness.confirms(used(kToday - days(1), 0), kStarted + days(7) - Duration(1)));
  EXPECT_TRUE(witness.confirms(used(kToday - days(1), 0), kStarted + days(7)));
  EXPECT_FALSE(witness.confirms(used(kToday, 0), kStarted + days(7))) << "it may be of today";
}

TEST(DayWitness, AClockThatWasSetBackIsAnEarlierDay) {
  DayWitness witness;
  witness.see(kToday + days(30), kStarted);
  witness.see(kToday, kStarted + days(1));
  EXPECT_FALSE(witness.confirms(used(kToday + days(1), 0), kStarted + days(20)));
}

TEST(DayWitness, AnEmptyDayLosesNothing) { EXPECT_TRUE(DayWitness().confirms({kToday, 7, false, 0}, kStarted)); }

}  // namespace
}  // namespace tocsin
