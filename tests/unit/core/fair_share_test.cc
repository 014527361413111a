#include "core/fair_share.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace tocsin {
namespace {

std::vector<int> shares(int total, const std::vector<int>& needs, std::uint64_t turn = 0) {
  std::vector<int> out;
  for (std::size_t i = 0; i < needs.size(); ++i) out.push_back(fair_share(total, needs, i, turn));
  return out;
}
using Shares = std::vector<int>;

TEST(FairShare, OneNodeGetsAll) { EXPECT_EQ(shares(7, {0}), Shares{7}); }

TEST(FairShare, UnneededPermitsAreSpreadEvenly) { EXPECT_EQ(shares(9, {0, 0, 0}), (Shares{3, 3, 3})); }

TEST(FairShare, SmallNeedsAreMetFirst) {
  EXPECT_EQ(shares(10, {100, 2, 100}), (Shares{4, 2, 4}));
  EXPECT_EQ(shares(10, {100, 0, 0}), (Shares{10, 0, 0}));
  EXPECT_EQ(shares(10, {3, 1, 0}), (Shares{5, 3, 2}));
}

TEST(FairShare, WithFewerPermitsThanNodesEachHasItsTurn) {
  std::vector<int> sum(3, 0);
  for (std::uint64_t turn = 0; turn < 30; ++turn) {
    const auto now = shares(1, {5, 5, 5}, turn);
    for (std::size_t i = 0; i < 3; ++i) sum[i] += now[i];
  }
  EXPECT_EQ(sum, (Shares{10, 10, 10}));
}

TEST(FairShare, GivesOutAllAndNoMoreWhateverTheNeeds) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<int> needs(1 + random() % 6);
    for (int& need : needs) need = static_cast<int>(random() % 2 ? random() % 10 : random() % 1000);
    const int total = static_cast<int>(random() % 2 ? random() % 8 : random() % 1000);
    const auto got = shares(total, needs, random());
    ASSERT_EQ(std::accumulate(got.begin(), got.end(), 0), total);
    bool is_short = false;
    for (std::size_t n = 0; n < needs.size(); ++n) is_short = is_short || got[n] < needs[n];
    for (std::size_t n = 0; n < needs.size(); ++n) {
      if (is_short) {
        ASSERT_LE(got[n], needs[n]) << "more than it needs while another lacks some";
      }
    }
  }
}

}  // namespace
}  // namespace tocsin
