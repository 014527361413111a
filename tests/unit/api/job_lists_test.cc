// The cursors of GET /v1/jobs.
#include "support/api_fixture.h"

namespace tocsin {
namespace {

using JobLists = ApiTest;

TEST_F(JobLists, ACursorBelongsToItsFilters) {
  for (int i = 0; i < 3; ++i) make_job("same");
  const auto cursor = get("/v1/jobs?biz_id=same&limit=2").body.at("next_cursor").get<std::string>();
  EXPECT_EQ(get("/v1/jobs?biz_id=same&limit=1&cursor=" + cursor).status, 200);
  for (const char* other : {"", "biz_id=other&", "biz_id=same&status=pending&", "status=pending&"})
    EXPECT_EQ(get(std::string("/v1/jobs?") + other + "cursor=" + cursor).field(), "cursor") << other;
}

}  // namespace
}  // namespace tocsin
