#include "service/audit_log.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace tocsin {
namespace {

TEST(AuditLog, DropsAndCountsEntriesBeyondItsBound) {
  ManualClock clock;
  AuditLog log(SessionConfig{}, clock);  // never started: nothing is written
  AuditEntry entry;
  entry.kind = Audit::each;
  entry.caller = {"ops", "admin", "127.0.0.1"};
  entry.action = "pauseType";
  for (int i = 0; i < 10'000; ++i) log.record(entry);
  EXPECT_EQ(log.lost(), 0);
  log.record(entry);
  log.record(entry);
  EXPECT_EQ(log.lost(), 2);
  entry.caller.name.clear();
  log.record(entry);
  EXPECT_EQ(log.lost(), 2) << "calls without a token are not recorded";
}

TEST(AuditLog, ACallThatChangedManyJobsHasAnEntryOfItsOwn) {
  ManualClock clock;
  AuditLog log(SessionConfig{}, clock);
  AuditEntry entry;
  entry.kind = Audit::each;
  entry.caller = {"shop", "producer", "127.0.0.1"};
  for (int i = 0; i < 10'000; ++i) log.record(entry);
  entry.kind = Audit::counted;
  log.record(entry);
  EXPECT_EQ(log.lost(), 0) << "added up, so it needs no room";
  entry.filter_json = R"({"biz_id":"many"})";
  log.record(entry);
  EXPECT_EQ(log.lost(), 1);
}

}  // namespace
}  // namespace tocsin
