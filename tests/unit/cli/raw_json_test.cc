#include "cli/raw_json.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(RawJson, KeepsNumbersAsTheyWereWritten) {
  EXPECT_EQ(raw_items(R"({"items":[{"a":0.10000000000000000000001,"b":12345678901234567890123},1.50],"x":[2.0]})"),
            R"({"a":0.10000000000000000000001,"b":12345678901234567890123},1.50)");
}

TEST(RawJson, WritesNestedItemsWhole) {
  EXPECT_EQ(raw_items(R"({"x":{"items":[9]},"items":[{"a":[],"b":{},"c":[1,[2,{"d":null}]],"e":"q\"\n"},[],true]})"),
            R"({"a":[],"b":{},"c":[1,[2,{"d":null}]],"e":"q\"\n"},[],true)");
  EXPECT_EQ(raw_items(R"({"items":[],"next_cursor":null})"), "");
  EXPECT_EQ(raw_items(R"({"next_cursor":"items"})"), "");
}

}  // namespace
}  // namespace tocsin
