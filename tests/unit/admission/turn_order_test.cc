#include "admission/turn_order.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tocsin {
namespace {

TEST(TurnOrder, BeginsWithTheLowestId) { EXPECT_EQ(TurnOrder().first(std::vector<TypeId>{3, 5, 9}), 0U); }

TEST(TurnOrder, ContinuesAfterTheTypeServedLast) {
  TurnOrder turn;
  const std::vector<TypeId> types{3, 5, 9};
  turn.served(3);
  EXPECT_EQ(turn.first(types), 1U);
  turn.served(9);
  EXPECT_EQ(turn.first(types), 0U);
}

TEST(TurnOrder, PassesATypeThatHasNoWorkAnyMore) {
  TurnOrder turn;
  turn.served(5);
  EXPECT_EQ(turn.first(std::vector<TypeId>{3, 9}), 1U);
}

TEST(TurnOrder, EachTypeIsServedWithinAsManyServingsAsThereAreTypes) {
  TurnOrder turn;
  const std::vector<TypeId> types{3, 5, 9, 20};
  turn.served(7);
  std::map<TypeId, int> served;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const TypeId type = types[turn.first(types)];
    ++served[type];
    turn.served(type);
  }
  EXPECT_EQ(served.size(), types.size());
}

}  // namespace
}  // namespace tocsin
