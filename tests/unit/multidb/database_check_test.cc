#include "multidb/database_check.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

// The node knows by this field that the database does not answer at all (node/outage_watch.h).
TEST(DatabaseCheck, TellsThatNoConnectionCouldBeOpened) {
  OpenDatabases open;
  OpenDatabase& database = open.databases.emplace_back();
  database.url = "postgresql://nobody@127.0.0.1:1/none";  // a port that nothing listens at
  database.expected = std::make_shared<ExpectedDatabase>("main", DatabaseIdentity());
  const Status done = DatabaseCheck(open, database, [](const ServerReport&) {}).run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  EXPECT_EQ(done.error().field, kUnreachable);
}

}  // namespace
}  // namespace tocsin
