#include "cli/raw_json.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/print.h"

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

TEST(RawJson, OfOneAnswerIsItsTextUnchanged) {
  RestReply reply;
  reply.text = R"({"b":0.10000000000000000000001,"a":12345678901234567890123,"c":-0,"d":1e2})";
  reply.body = Json::parse(reply.text);
  std::ostringstream out;
  print_json(out, reply);
  EXPECT_EQ(out.str(), reply.text + "\n");
}

}  // namespace
}  // namespace tocsin
