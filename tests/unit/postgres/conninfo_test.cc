#include "postgres/conninfo.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(Conninfo, KnowsAPassword) {
  EXPECT_TRUE(*has_password("postgresql://u:secret@db.example/tocsin"));
  EXPECT_TRUE(*has_password("host=db password=secret"));
  EXPECT_TRUE(*has_password("postgresql://u@db/x?sslpassword=secret"));
  EXPECT_FALSE(*has_password("postgresql://u@db.example/tocsin?passfile=/etc/pw"));
  EXPECT_FALSE(*has_password("service=source"));
}

TEST(Conninfo, LeavesThePasswordOut) {
  EXPECT_EQ(
      *without_password("postgresql://u:secret@a,b:5433/tocsin?target_session_attrs=read-write", "/etc/pw file"),
      "user='u' dbname='tocsin' host='a,b' port=',5433' target_session_attrs='read-write' passfile='/etc/pw file'");
  EXPECT_EQ(*without_password("host=db user='o\\'neil' password=secret passfile=/old", "/new"),
            "user='o\\'neil' host='db' passfile='/new'");
  EXPECT_EQ(*without_password("service=source", ""), "service='source'");
}

TEST(Conninfo, ShowsNothingOfAnUnreadableString) {
  const auto refused = without_password("postgresql://u:secret@[oops/tocsin", "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace tocsin
