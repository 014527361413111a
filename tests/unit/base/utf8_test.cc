#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tocsin {
namespace {

using namespace std::string_literals;

TEST(Utf8, KnowsTheShapeOfEveryLength) {
  for (const char* text : {"", "plain", "é", "订单", "😀", "\x7f", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text)) << text;
  EXPECT_EQ(utf8_sequence("é"), 2U);
  EXPECT_EQ(utf8_sequence("订"), 3U);
  EXPECT_EQ(utf8_sequence("😀"), 4U);
  EXPECT_EQ(utf8_sequence(""), 0U);
}

TEST(Utf8, RefusesWhatRfc3629Refuses) {
  const std::vector<std::string> wrong{
      "\x80",              // a continuation alone
      "\xc3",              // cut short
      "\xe8\xae",          // cut short
      "\xc0\x80",          // overlong NUL
      "\xe0\x80\xaf",      // overlong slash
      "\xf0\x80\x80\xaf",  // overlong slash
      "\xed\xa0\x80",      // a surrogate
      "\xf4\x90\x80\x80",  // above U+10FFFF
      "\xff",
  };
  for (const std::string& text : wrong) EXPECT_FALSE(is_utf8("ok" + text));
}

TEST(Utf8, StorableTextReplacesInvalidPartsOnly) {
  EXPECT_EQ(storable("订单 is late", 100), "订单 is late");
  EXPECT_EQ(storable("a\0b"s, 100), "a?b");
  EXPECT_EQ(storable("\xff\xfe é", 100), "?? é");
}

TEST(Utf8, StorableTextIsCutBetweenCharacters) {
  EXPECT_EQ(storable("abc", 2), "ab");
  EXPECT_EQ(storable("aé", 2), "a");
  EXPECT_EQ(storable("😀😀", 7), "😀");
  EXPECT_EQ(storable("x", 0), "");
}

}  // namespace
}  // namespace tocsin
