#include "postgres/part_writer.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tocsin {
namespace {

const Error kHeld{ErrorCode::conflict, "its key is held", kLocked};
const Error kNotTaken{ErrorCode::invalid, "it is refused", ""};
const Error kDown{ErrorCode::unavailable, "the server is down", ""};

// Writes 100 items, some of which fail.
class PartWriterTest : public testing::Test {
 protected:
  static constexpr std::size_t kItems = 100;
  Result<std::size_t> write() {
    return parts.write(
        kItems,
        [&](std::size_t begin, std::size_t size) -> Result<bool> {
          ++calls;
          const auto failing = failures.lower_bound(begin);
          if (failing != failures.end() && failing->first < begin + size) return failing->second;
          for (std::size_t i = begin; i < begin + size; ++i) written.push_back(i);
          return changes;
        },
        [&](std::size_t item, const Error&) { left_out.push_back(item); });
  }
  void fail(std::size_t from, std::size_t to, const Error& why) {
    for (std::size_t i = from; i < to; ++i) failures.emplace(i, why);
  }

  PartWriter parts{[](const Error& error) { return error.code != ErrorCode::unavailable; }, 20, 3};
  std::map<std::size_t, Error> failures;
  std::vector<std::size_t> written, left_out;
  bool changes = true;
  int calls = 0;
};

TEST_F(PartWriterTest, LeavesOutOnlyWhatFails) {
  fail(7, 8, kHeld);
  fail(60, 61, kNotTaken);
  EXPECT_EQ(write().value(), kItems);
  EXPECT_EQ(left_out, (std::vector<std::size_t>{7, 60}));
  EXPECT_EQ(written.size(), kItems - 2);
  EXPECT_LT(calls, 40) << "in halves, not one by one";
}

TEST_F(PartWriterTest, EndsAfterItsWaitsInAllCalls) {
  fail(0, kItems, kHeld);
  EXPECT_LT(write().value(), 20U);
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(write().value(), 0U);
  EXPECT_EQ(calls, 20);
}

TEST_F(PartWriterTest, EndsWhenTooManyAreRefusedOneAfterTheOther) {
  fail(50, 52, kNotTaken);
  fail(80, 90, kNotTaken);
  EXPECT_EQ(write().value(), 83U);
  EXPECT_EQ(left_out, (std::vector<std::size_t>{50, 51, 80, 81, 82}));
}

TEST_F(PartWriterTest, IsInDoubtIfAPartWasWritten) {
  fail(0, 1, kNotTaken);
  fail(40, 41, kDown);
  const auto done = write();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::in_doubt);
  EXPECT_EQ(done.error().message, kDown.message);
}

TEST_F(PartWriterTest, NothingIsWrittenIfTheFirstPartFails) {
  fail(40, 41, kDown);
  EXPECT_EQ(write().error().code, ErrorCode::unavailable);
}

TEST_F(PartWriterTest, IsNotInDoubtIfNoPartChangedAnything) {
  changes = false;
  fail(0, 1, kNotTaken);
  fail(40, 41, kDown);
  EXPECT_EQ(write().error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace tocsin
