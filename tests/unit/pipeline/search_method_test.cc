#include "pipeline/search_method.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(SearchMethod, TheFirstSearchIsAWalk) { EXPECT_EQ(SearchMethod().most_bytes(64), 0); }

TEST(SearchMethod, AnIndexOfFourKibibytesPerLaneIsRead) {
  SearchMethod method;
  method.note(/*walked=*/1000, /*shards=*/64);
  EXPECT_EQ(method.most_bytes(64), 1000 * 4096);
}

TEST(SearchMethod, AWalkOfSomeShardsDecidesForAll) {
  SearchMethod method;
  method.note(/*walked=*/250, /*shards=*/16);
  EXPECT_EQ(method.most_bytes(64), 1000 * 4096);
}

TEST(SearchMethod, TheWeightOfAWalkHalvesInSixMinutesOfReading) {
  SearchMethod method;
  method.note(1000, 64);
  for (int i = 0; i < 355; ++i) method.note(std::nullopt, 64);
  EXPECT_NEAR(static_cast<double>(method.most_bytes(64)), 500 * 4096, 5 * 4096);
  method.note(1000, 64);
  EXPECT_EQ(method.most_bytes(64), 1000 * 4096) << "a new walk counts again";
}

TEST(SearchMethod, AScanWithoutASearchChangesNothing) {
  SearchMethod method;
  method.note(1000, 64);
  method.note(std::nullopt, 0);
  EXPECT_EQ(method.most_bytes(64), 1000 * 4096);
}

}  // namespace
}  // namespace tocsin
