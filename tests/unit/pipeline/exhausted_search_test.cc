#include "pipeline/exhausted_search.h"

#include <gtest/gtest.h>

#include "unit/pipeline/lane_rows.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kSearchedAt{1'767'225'600s};

TEST(ExhaustedSearch, ReadsOncePerSweepAndUntilTheRowsAreGone) {
  ExhaustedSearch search;
  EXPECT_FALSE(search.is_wanted());
  search.begin();
  ASSERT_TRUE(search.is_wanted());
  EXPECT_EQ(search.from(), WallTime::min());
  auto rows = rows_due({kSearchedAt - 4s, kSearchedAt - 3s, kSearchedAt - 2s});
  rows[1].is_exhausted = rows[2].is_exhausted = true;
  search.note_page(kSearchedAt, rows, /*is_page_full=*/false);
  EXPECT_FALSE(search.is_wanted());
  EXPECT_EQ(search.from(), kSearchedAt - 3s);
  EXPECT_EQ(search.from_id(), 0) << "it is among the rows read next";
  search.begin();
  search.note_page(kSearchedAt, {}, /*is_page_full=*/false);
  EXPECT_EQ(search.from(), kSearchedAt) << "no row before it is looked at twice";
}

TEST(ExhaustedSearch, ALongSearchContinuesPageByPage) {
  ExhaustedSearch search;
  search.begin();
  const auto rows = rows_due({kSearchedAt - 9s, kSearchedAt - 8s});
  search.note_page(kSearchedAt, rows, /*is_page_full=*/true);
  EXPECT_TRUE(search.is_wanted()) << "there are more";
  EXPECT_EQ(search.from(), kSearchedAt - 8s);
  EXPECT_EQ(search.from_id(), rows[1].candidate.job_id);
}

TEST(ExhaustedSearch, TheNextOneBeginsWithTheOldestThatWasFound) {
  ExhaustedSearch search;
  search.begin();
  auto rows = rows_due({kSearchedAt - 9s, kSearchedAt - 8s});
  rows[0].is_exhausted = true;
  search.note_page(kSearchedAt, rows, /*is_page_full=*/true);
  search.note_page(kSearchedAt, rows_due({kSearchedAt - 7s}), /*is_page_full=*/false);
  EXPECT_FALSE(search.is_wanted());
  EXPECT_EQ(search.from(), kSearchedAt - 9s) << "it may not be dead yet";
}

TEST(ExhaustedSearch, AnAuditBeginsAnewButInterruptsNoLongSearch) {
  ExhaustedSearch search;
  search.begin();
  search.note_page(kSearchedAt, rows_due({kSearchedAt - 9s}), /*is_page_full=*/true);
  search.begin_anew();
  EXPECT_EQ(search.from(), kSearchedAt - 9s) << "or it would never come to its end";
  search.note_page(kSearchedAt, {}, /*is_page_full=*/false);
  search.begin_anew();
  EXPECT_TRUE(search.is_wanted());
  EXPECT_EQ(search.from(), WallTime::min());
}

}  // namespace
}  // namespace tocsin
