// The statements compiled into the binary.
#include "postgres/sql_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tocsin {
namespace {

TEST(SqlText, FilesAreSortedSoThatTheyAreFound) {
  EXPECT_TRUE(std::ranges::is_sorted(sql::files(), {}, &sql::File::name));
  EXPECT_GT(sql::files().size(), 40U);
}

TEST(SqlText, AStatementHasNoCommentsAndNoEmptyLines) {
  const std::string text = sql::statement("due_by_id");
  EXPECT_TRUE(text.starts_with("SELECT j.job_id, j.type_id, j.fire_at\nFROM unnest(")) << text;
  EXPECT_EQ(text.find("--"), std::string::npos);
  EXPECT_EQ(text.find("\n\n"), std::string::npos);
  EXPECT_EQ(text.find("Index"), std::string::npos);
}

TEST(SqlText, ValuesAndSharedPartsReplaceTheirNames) {
  const std::string text = sql::statement("move_rescue", {{"thaw_lease_ms", "2000"}});
  EXPECT_NE(text.find("thaw_at = clock_timestamp() + interval '2000 ms'"), std::string::npos) << text;  // in a part
  EXPECT_NE(text.find("RETURNING shard, source, target"), std::string::npos) << text;
  EXPECT_EQ(text.find("{{"), std::string::npos) << text;
}

TEST(SqlText, APartGetsTheValuesThatItsCallGivesAndPassesThemOn) {
  const std::string text = sql::statement("fire_due", {{"table", "tocsin.job_live_0003"}});
  EXPECT_NE(text.find("FROM tocsin.job_live_0003 j\nWHERE j.shard + 0"), std::string::npos) << text;  // the caller's
  EXPECT_NE(text.find("d.attempts + 1,"), std::string::npos) << text;  // of history_row, a part of the part fired
  EXPECT_NE(text.find("$6::text,"), std::string::npos) << text;        // passed on by fired
  EXPECT_NE(text.find("9::smallint"), std::string::npos) << text;
  EXPECT_EQ(text.find("{{"), std::string::npos) << text;
}

TEST(SqlText, AValueMayBeEmpty) {
  const std::string text = sql::statement("finish", {{"table", "tocsin.job_live"}});
  EXPECT_NE(text.find("FOR UPDATE OF j SKIP LOCKED"), std::string::npos) << text;
  EXPECT_EQ(text.find("{{"), std::string::npos) << text;
}

}  // namespace
}  // namespace tocsin
