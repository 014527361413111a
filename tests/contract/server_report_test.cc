// What a check of a database reports of its server and of the node's role. On PostgreSQL alone: a fake has no roles.
#include <gtest/gtest.h>

#include "multidb/database_check.h"
#include "support/must.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class ServerReportTest : public testing::Test {
 protected:
  ServerReportTest() {
    database.query("DROP ROLE IF EXISTS report_reader; CREATE ROLE report_reader LOGIN");
    Session session{SessionConfig{database.url()}};
    const auto identity = must(identify(session));
    std::string url = database.url();
    const auto user = url.find("://") + 3;
    url.replace(user, url.find('@') - user, "report_reader");
    open.databases.push_back({0, "a", "", url, true, std::make_shared<ExpectedDatabase>("a", identity), {}});
    check.emplace(open, open.databases.front(), [this](const ServerReport& report) { reports.push_back(report); });
  }
  ~ServerReportTest() override { database.query("DROP ROLE report_reader"); }

  TestDatabase database{8};
  OpenDatabases open;
  std::vector<ServerReport> reports;
  std::optional<DatabaseCheck> check;
};

// A node that does not know whether its role is a superuser must not call functions.
TEST_F(ServerReportTest, NoDatabaseIsUsedBeforeItsFirstReport) {
  database.query("REVOKE SELECT ON pg_catalog.pg_roles FROM public");
  const Status unknown = check->run();
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unavailable) << "it may be read later";
  EXPECT_NE(unknown.error().message.find("pg_roles"), std::string::npos) << unknown.error().message;
  EXPECT_TRUE(reports.empty());

  database.query("GRANT SELECT ON pg_catalog.pg_roles TO public");
  ASSERT_TRUE(check->run());
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].superuser, "");

  database.query("REVOKE SELECT ON pg_catalog.pg_roles FROM public");
  EXPECT_TRUE(check->run()) << "the last report stands";
  EXPECT_EQ(reports.size(), 1U);

  database.query("GRANT SELECT ON pg_catalog.pg_roles TO public; ALTER ROLE report_reader SUPERUSER");
  ASSERT_TRUE(check->run());
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].superuser, "report_reader");
}

// A member may become the role that it belongs to, also one that inherits nothing of it.
TEST_F(ServerReportTest, AMemberOfASuperuserIsReportedAsOne) {
  database.query(
      "DROP ROLE IF EXISTS report_admin, report_group; CREATE ROLE report_admin SUPERUSER; CREATE ROLE report_group;"
      "GRANT report_admin TO report_group; GRANT report_group TO report_reader; ALTER ROLE report_reader NOINHERIT");
  ASSERT_TRUE(check->run());
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].superuser, "report_admin");
  database.query("DROP ROLE report_admin, report_group");
  ASSERT_TRUE(check->run());
  EXPECT_EQ(reports.back().superuser, "");
}

TEST_F(ServerReportTest, TakesNoConnectionBesideThatOfTheCheck) {
  database.query("ALTER ROLE report_reader CONNECTION LIMIT 1");
  const Status done = check->run();
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  EXPECT_EQ(reports.size(), 1U);
}

// Sessions of a node set their own; what business code gets is what counts.
TEST_F(ServerReportTest, ReadsTheSettingsThatBusinessCodeGets) {
  database.query("ALTER ROLE report_reader SET synchronous_commit = off");
  ASSERT_TRUE(check->run());
  ASSERT_EQ(reports.size(), 1U);
  ASSERT_EQ(reports[0].warnings.size(), 1U);
  EXPECT_NE(reports[0].warnings[0].find("synchronous_commit is off"), std::string::npos) << reports[0].warnings[0];
}

}  // namespace
}  // namespace tocsin
