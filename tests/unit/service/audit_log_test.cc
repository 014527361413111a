#include "service/audit_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/manual_clock.h"

namespace tocsin {
namespace {

class AuditLogTest : public ::testing::Test {
 protected:
  // Keeps what it is given, or answers with the error that the test sets.
  struct Store final : AuditStore {
    explicit Store(AuditLogTest& owner) : test(owner) {}
    Status append(std::span<const AuditEntry> entries) override {
      if (test.error) return *test.error;
      test.written.insert(test.written.end(), entries.begin(), entries.end());
      return Unit{};
    }
    AuditLogTest& test;
  };

  static AuditEntry entry(const std::string& action = "pauseType") {
    AuditEntry entry;
    entry.kind = Audit::each;
    entry.caller = {"ops", "admin", "127.0.0.1"};
    entry.action = action;
    return entry;
  }
  static AuditEntry counted() {
    AuditEntry entry;
    entry.kind = Audit::counted;
    entry.caller = {"shop", "producer", "127.0.0.1"};
    entry.action = "createJob";
    return entry;
  }
  std::vector<std::string> actions() const {
    std::vector<std::string> found;
    for (const AuditEntry& each : written) found.push_back(each.action);
    return found;
  }

  ManualClock clock;
  std::optional<Error> error;
  std::vector<AuditEntry> written;
  AuditLog log{std::make_unique<Store>(*this), clock};  // never started: only the test flushes
};

TEST_F(AuditLogTest, DropsAndCountsEntriesBeyondItsBound) {
  for (int i = 0; i < 10'000; ++i) log.record(entry());
  EXPECT_EQ(log.lost(), 0);
  log.record(entry());
  log.record(entry());
  EXPECT_EQ(log.lost(), 2);
  AuditEntry nameless = entry();
  nameless.caller.name.clear();
  log.record(nameless);
  EXPECT_EQ(log.lost(), 2) << "calls without a token are not recorded";
}

TEST_F(AuditLogTest, ACallThatChangedManyJobsHasAnEntryOfItsOwn) {
  for (int i = 0; i < 10'000; ++i) log.record(entry());
  AuditEntry sum = counted();
  log.record(sum);
  EXPECT_EQ(log.lost(), 0) << "added up, so it needs no room";
  sum.filter_json = R"({"biz_id":"many"})";
  log.record(sum);
  EXPECT_EQ(log.lost(), 1);
}

TEST_F(AuditLogTest, KeepsEntriesAndSumsWhileTheDatabaseIsDown) {
  for (const char* action : {"1", "2", "3"}) log.record(entry(action));
  for (int i = 0; i < 2; ++i) log.record(counted());
  error = Error{ErrorCode::unavailable, "no connection", ""};
  for (int i = 0; i < 3; ++i) {
    clock.advance(std::chrono::minutes(1));
    EXPECT_FALSE(log.flush(false)) << "no haste";
  }
  log.record(entry("4"));
  log.record(counted());
  error.reset();
  clock.advance(std::chrono::minutes(1));
  EXPECT_FALSE(log.flush(false));
  EXPECT_EQ(actions(), (std::vector<std::string>{"1", "2", "3", "4", "createJob"}));
  EXPECT_EQ(written.back().changed, 3);
  EXPECT_EQ(log.lost(), 0);
}

TEST_F(AuditLogTest, WritesNoEntryAgainThatMayBeWritten) {
  log.record(entry("1"));
  log.record(counted());
  error = Error{ErrorCode::in_doubt, "connection lost", ""};
  EXPECT_FALSE(log.flush(true));
  EXPECT_EQ(log.lost(), 2) << "the entry and the sum may be missing";
  error.reset();
  log.record(entry("2"));
  EXPECT_FALSE(log.flush(true));
  EXPECT_EQ(actions(), (std::vector<std::string>{"2"}));
  EXPECT_EQ(log.lost(), 2);
}

TEST_F(AuditLogTest, WritesAThousandEntriesAtATimeAndSumsOnceAMinute) {
  for (int i = 0; i < 1'001; ++i) log.record(entry());
  log.record(counted());
  EXPECT_TRUE(log.flush(false));
  EXPECT_EQ(written.size(), 1'000U);
  EXPECT_FALSE(log.flush(false));
  EXPECT_EQ(written.size(), 1'001U);
  clock.advance(std::chrono::minutes(1));
  EXPECT_FALSE(log.flush(false));
  EXPECT_EQ(written.size(), 1'002U);
}

}  // namespace
}  // namespace tocsin
