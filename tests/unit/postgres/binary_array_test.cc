#include "postgres/binary_array.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using Of = BinaryArray::Of;

std::string bytes(const BinaryArray& array) {
  std::string hex;
  const pqxx::binarystring parameter = array.parameter();
  for (const unsigned char byte : parameter) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}

// Dimensions, whether there are nulls, the type's number; then of a dimension its length and first index.
TEST(BinaryArray, BeginsWithItsHeader) {
  EXPECT_EQ(bytes(BinaryArray(Of::int8)),
            "00000000"
            "00000000"
            "00000014");
  BinaryArray one(Of::int2);
  one.add(-2);
  EXPECT_EQ(bytes(one),
            "00000001"
            "00000000"
            "00000015"
            "00000001"
            "00000001"
            "00000002"
            "fffe");
}

TEST(BinaryArray, PutsEachElementBehindItsLength) {
  BinaryArray numbers(Of::int4), ids(Of::int8), texts(Of::text), documents(Of::jsonb);
  numbers.add(258);
  numbers.add_null();
  EXPECT_EQ(bytes(numbers),
            "00000001"
            "00000001"
            "00000017"
            "00000002"
            "00000001"
            "00000004"
            "00000102"
            "ffffffff");
  ids.add(INT64_MIN);
  EXPECT_EQ(bytes(ids).substr(40),
            "00000008"
            "8000000000000000");
  texts.add_text("");
  texts.add_text("\"\\");
  EXPECT_EQ(bytes(texts).substr(40),
            "00000000"
            "00000002"
            "225c");
  documents.add_text("{}");
  EXPECT_EQ(bytes(documents).substr(40),
            "00000003"
            "01"
            "7b7d")
      << "behind the version of the format";
}

TEST(BinaryArray, CountsTimeFromTheYear2000) {
  BinaryArray times(Of::timestamptz);
  times.add(WallTime(946'684'800s + 1us));
  times.add(WallTime::min());
  times.add(WallTime::max());
  EXPECT_EQ(bytes(times).substr(40),
            "00000008"
            "0000000000000001"
            "00000008"
            "8000000000000000"
            "00000008"
            "7fffffffffffffff");
}

TEST(BinaryArrayDeathTest, HoldsOnlyWhatFits) {
  BinaryArray small(Of::int2), texts(Of::text);
  EXPECT_DEATH(small.add(32'768), "");
  EXPECT_DEATH(small.add(-32'769), "");
  EXPECT_DEATH(texts.add(1), "");
  EXPECT_DEATH(small.add_text("1"), "");
}

}  // namespace
}  // namespace tocsin
