#include <gtest/gtest.h>

#include "ports/biz_type.h"
#include "tocsin/error.h"
#include "tocsin/job_status.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr JobStatus kStatuses[] = {JobStatus::pending, JobStatus::running, JobStatus::done, JobStatus::cancelled,
                                   JobStatus::dead};

TEST(JobStatus, CodesAreThoseThatTablesHold) {
  EXPECT_EQ(static_cast<int>(JobStatus::pending), 0);
  EXPECT_EQ(static_cast<int>(JobStatus::running), 1);
  EXPECT_EQ(static_cast<int>(JobStatus::done), 2);
  EXPECT_EQ(static_cast<int>(JobStatus::cancelled), 3);
  EXPECT_EQ(static_cast<int>(JobStatus::dead), 4);
}

TEST(JobStatus, NamesAreThoseOfTheContract) {
  EXPECT_EQ(to_string(JobStatus::pending), "pending");
  EXPECT_EQ(to_string(JobStatus::running), "running");
  EXPECT_EQ(to_string(JobStatus::done), "done");
  EXPECT_EQ(to_string(JobStatus::cancelled), "cancelled");
  EXPECT_EQ(to_string(JobStatus::dead), "dead");
  for (const JobStatus status : kStatuses) EXPECT_EQ(job_status_from(to_string(status)), status);
}

TEST(JobStatus, KnowsNoOtherNames) {
  for (const char* name : {"", "Pending", "done ", "canceled", "0", "pending\n"}) {
    EXPECT_FALSE(job_status_from(name)) << name;
  }
}

TEST(JobStatus, IsFinalOnceTheJobIsOver) {
  EXPECT_FALSE(is_final(JobStatus::pending));
  EXPECT_FALSE(is_final(JobStatus::running));
  EXPECT_TRUE(is_final(JobStatus::done));
  EXPECT_TRUE(is_final(JobStatus::cancelled));
  EXPECT_TRUE(is_final(JobStatus::dead));
}

TEST(ErrorCode, HasANameForEveryValue) {
  EXPECT_STREQ(to_string(ErrorCode::unavailable), "unavailable");
  EXPECT_STREQ(to_string(ErrorCode::in_doubt), "in doubt");
  EXPECT_STREQ(to_string(ErrorCode::conflict), "conflict");
  EXPECT_STREQ(to_string(ErrorCode::moved), "moved");
  EXPECT_STREQ(to_string(ErrorCode::superseded), "superseded");
  EXPECT_STREQ(to_string(ErrorCode::invalid), "invalid");
  EXPECT_STREQ(to_string(static_cast<ErrorCode>(99)), "?");
}

BizType type_named(TypeId id, const std::string& name) {
  BizType type;
  type.type_id = id;
  type.name = name;
  return type;
}

TEST(TypeCatalog, FindsTypesByNameAndById) {
  const TypeCatalog catalog({type_named(3, "order.unpaid"), type_named(7, "ticket.stale")});
  ASSERT_NE(catalog.find(3), nullptr);
  EXPECT_EQ(catalog.find(3)->name, "order.unpaid");
  ASSERT_NE(catalog.find("ticket.stale"), nullptr);
  EXPECT_EQ(catalog.find("ticket.stale")->type_id, 7);
  EXPECT_EQ(catalog.find("ticket"), nullptr);
  EXPECT_EQ(catalog.find(4), nullptr);
  EXPECT_EQ(catalog.types.size(), 2U);
}

TEST(TypeCatalog, IsEmptyAtFirst) {
  const TypeCatalog catalog;
  EXPECT_TRUE(catalog.types.empty());
  EXPECT_EQ(catalog.find("any"), nullptr);
}

TEST(BizType, IsPausedUntilItsTimeIfOneIsGiven) {
  const WallTime noon{1'767'268'800s};
  BizType type;
  EXPECT_FALSE(type.is_paused(noon));
  type.paused = true;
  EXPECT_TRUE(type.is_paused(noon));
  type.paused_until = noon;
  EXPECT_TRUE(type.is_paused(noon - 1us));
  EXPECT_FALSE(type.is_paused(noon));
}

}  // namespace
}  // namespace tocsin
