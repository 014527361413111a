#include "base/part_size.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(PartSize, IsUnlimitedUntilACallIsRefused) {
  PartSize size;
  size.note_success();
  EXPECT_GT(size.most(), 1'000'000'000U);
}

TEST(PartSize, HalvesUntilOneRowIsAlone) {
  PartSize size;
  size.note_refused(500);
  EXPECT_EQ(size.most(), 250U);
  size.note_refused(250);
  EXPECT_EQ(size.most(), 125U);
  size.note_refused(1);
  EXPECT_EQ(size.most(), 1U) << "never none";
}

TEST(PartSize, IsHalfOfTheRefusedSizeNotOfTheAllowedOne) {
  PartSize size;
  size.note_refused(500);
  size.note_refused(8);
  EXPECT_EQ(size.most(), 4U);
}

TEST(PartSize, DoublesWithEachSuccessWithoutOverflow) {
  PartSize size;
  size.note_refused(2);
  size.note_success();
  EXPECT_EQ(size.most(), 2U);
  std::size_t before = size.most();
  for (int i = 0; i < 200; ++i) {
    size.note_success();
    EXPECT_GE(size.most(), before);
    before = size.most();
  }
  EXPECT_GT(before, 1'000'000'000U);
}

}  // namespace
}  // namespace tocsin
