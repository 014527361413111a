#include "maintenance/superusers.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(SuperusersTest, NoFunctionIsCalledInADatabaseBeforeItsReport) {
  const bool are_allowed = false;
  Superusers superusers(are_allowed);
  EXPECT_FALSE(superusers.is_known(0));
  superusers.note_report(0, {{}, ""});
  EXPECT_TRUE(superusers.is_known(0));
  EXPECT_FALSE(superusers.is_known(1)) << "its role may be another one";
  EXPECT_EQ(superusers.refusal(), "");
  superusers.note_report(1, {{}, "postgres"});
  EXPECT_NE(superusers.refusal(), "");
  superusers.note_report(1, {{}, ""});
  EXPECT_EQ(superusers.refusal(), "") << "the role was changed";
}

TEST(SuperusersTest, FunctionsRunAnywhereIfSuperusersMayCallThem) {
  const bool are_allowed = true;
  Superusers superusers(are_allowed);
  EXPECT_TRUE(superusers.is_known(0));
  EXPECT_EQ(superusers.note_report(0, {{}, "postgres"}).size(), 1U);
  EXPECT_EQ(superusers.refusal(), "");
}

}  // namespace
}  // namespace tocsin
