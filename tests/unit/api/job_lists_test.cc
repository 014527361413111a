// The cursors of GET /v1/jobs.
#include <set>

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

// All jobs of the list, by following next_cursor; and how many pages it has.
class PagedJobs : public ApiTest {
 public:
  explicit PagedJobs(int databases = 1) : ApiTest(databases) {}
  // A second after the one before it.
  void make(const std::string& biz_id, bool is_large) {
    backend.time += std::chrono::seconds(1);
    const std::string large = R"(,"attribute":{"text":")" + std::string(60'000, 'x') + "\"}";
    ids.insert(make_job(biz_id, is_large ? large : ""));
  }
  void expect_short_pages(const std::string& list) {
    std::set<std::string> seen;
    std::string cursor, created = "9999";
    for (int pages = 0; pages < 20; ++pages) {
      const Answer page = get(list + cursor);
      ASSERT_EQ(page.status, 200) << page.text;
      EXPECT_LT(page.text.size(), 2'500'000U);
      for (const Json& item : page.body.at("items")) {
        EXPECT_TRUE(seen.insert(item.at("job_id").get<std::string>()).second) << "listed twice";
        EXPECT_LT(item.at("gmt_create").get<std::string>(), created) << "newest first, over all pages";
        created = item.at("gmt_create").get<std::string>();
      }
      if (page.body.at("next_cursor").is_null()) break;
      cursor = "&cursor=" + page.body.at("next_cursor").get<std::string>();
    }
    EXPECT_EQ(seen, ids);
  }
  std::set<std::string> ids;
};

TEST_F(PagedJobs, APageOfLargeAttributesEndsEarlyAndLeadsOn) {
  for (int i = 0; i < 50; ++i) make("o-" + std::to_string(i), true);
  expect_short_pages("/v1/jobs?status=pending&limit=1000");
  expect_short_pages("/v1/jobs?limit=1000");
}

struct PagedJobsOfTwoDatabases : PagedJobs {
  PagedJobsOfTwoDatabases() : PagedJobs(2) {}
};

// Jobs of the other database that are older than where the list of this one was cut belong to a later page.
TEST_F(PagedJobsOfTwoDatabases, APageEndsWhereTheListOfOneDatabaseIsCut) {
  for (int i = 0; i < 120; ++i) {
    const std::string biz_id = "o-" + std::to_string(i);
    make(biz_id, backend.database_of(shard_of(biz_id, backend.shards())) == 1);
  }
  expect_short_pages("/v1/jobs?limit=1000");
}

}  // namespace
}  // namespace tocsin
