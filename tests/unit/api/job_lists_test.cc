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

// Of one type a page looks at a bounded part of the key: it may be short, or empty, and the cursor leads on.
TEST_F(JobLists, AListOfOneTypeContinuesBehindManyJobsOfAnother) {
  backend.add_type("other");
  const std::string old = make_job("key");
  for (int i = 0; i < ClientStore::kMostReadOfKey; ++i)
    ASSERT_EQ(post("/v1/jobs", R"({"biz_type":"other","biz_id":"key","delay_ms":60000})").status, 201);
  const std::string list = "/v1/jobs?biz_id=key&biz_type=order.unpaid";
  const Answer first = get(list);
  EXPECT_TRUE(first.body.at("items").empty());
  ASSERT_TRUE(first.body.at("next_cursor").is_string());
  const Answer second = get(list + "&cursor=" + first.body.at("next_cursor").get<std::string>());
  ASSERT_EQ(second.body.at("items").size(), 1u);
  EXPECT_EQ(second.body.at("items").at(0).at("job_id"), old);
  EXPECT_TRUE(second.body.at("next_cursor").is_null());
}

}  // namespace
}  // namespace tocsin
