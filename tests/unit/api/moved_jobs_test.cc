// Jobs whose shard moves to another database while a request for them waits, or between two pages.
#include <map>
#include <string>
#include <vector>

#include "unit/api/databases_api.h"

namespace tocsin {
namespace {

TEST_F(DatabasesApi, AJobThatMovesWhileARequestWaitsIsNotUnknown) {
  const struct {
    const char *method, *verb, *body;
    int status;
  } requests[] = {{"POST", "/cancel", "", 200},
                  {"POST", "/run", "", 200},
                  {"POST", "/reschedule", R"({"delay_ms":9})", 200},
                  {"POST", "/retry", "", 409}};
  for (const auto& [method, verb, body, status] : requests) {
    const std::string id = make_job(key_at(1)), path = "/v1/jobs/" + id + verb;
    backend.before_work = [&] { move(shard_of(std::stoll(id)), 1, 2); };
    const Answer answer = call(method, path, body);
    backend.before_work = nullptr;
    EXPECT_EQ(answer.status, 503) << path << answer.text;
    EXPECT_EQ(answer.retry_after, "1");
    EXPECT_EQ(call(method, path, body).status, status) << path;
  }
  for (const char* const read : {"", "/explain"}) {
    const std::string id = make_job(key_at(1));
    backend.before_work = [&] { move(shard_of(std::stoll(id)), 1, 2); };
    EXPECT_EQ(get("/v1/jobs/" + id + read).status, 200) << "it looks again";
    backend.before_work = nullptr;
  }
}

TEST_F(DatabasesApi, IdsThatMoveWhileTheirCancelWaitsAreLocked) {
  for (const bool is_locked_first : {false, true}) {
    const std::string id = make_job(key_at(1));
    const Shard shard = shard_of(std::stoll(id));
    if (is_locked_first) backend.database_at(1).frozen.insert(shard);
    backend.before_work = [&] {
      if (!is_locked_first || backend.posted_waiting > 0) move(shard, 1, 2);
    };
    const Answer answer = post("/v1/jobs/cancel", cancel_of(id));
    backend.before_work = nullptr;
    EXPECT_EQ(answer.body.at("not_found"), Json::array());
    EXPECT_EQ(answer.body.at("locked"), Json::array({id}));
    EXPECT_EQ(post("/v1/jobs/cancel", cancel_of(id)).body.at("cancelled"), Json::array({id}));
  }
}

class MovingKeys : public DatabasesApi, public testing::WithParamInterface<const char*> {};

// At once; behind the count of its jobs; behind the pass that found all of them frozen.
INSTANTIATE_TEST_SUITE_P(When, MovingKeys, testing::Values("asked", "posted", "waiting"));

TEST_P(MovingKeys, AreNotAnsweredAsKeysWithoutAJob) {
  const std::string when = GetParam(), key = key_at(1), body = R"({"biz_id":")" + key + "\"}";
  std::vector<std::string> keys(ClientStore::kMostOfOneKeyTogether + 1, key);
  ASSERT_EQ(post("/v1/jobs/batch", batch_of(keys)).status, 201);
  const Shard shard = shard_of(key, kDefaultShards);
  if (when == "waiting") backend.database_at(1).frozen.insert(shard);
  backend.posted = 0;
  backend.before_work = [&] {
    if (when == "asked" || (when == "posted" && backend.posted > 0) || backend.posted_waiting > 0) move(shard, 1, 2);
  };
  const Answer answer = post("/v1/jobs/cancel", body);
  backend.before_work = nullptr;
  EXPECT_EQ(answer.status, 503) << answer.text;
  EXPECT_EQ(answer.retry_after, "1");
  EXPECT_EQ(post("/v1/jobs/cancel", body).body.at("cancelled").size(), keys.size());
}

TEST_F(DatabasesApi, JobsThatMoveWhileTheOutboxesAreLookedAtAreLocked) {
  const std::string key = key_at(1), id = make_job(key);
  const std::string entry = std::to_string(std::stoll(id) + kMaxShards);
  backend.relay = [&] { move(shard_of(std::stoll(id)), 1, 2); };
  EXPECT_EQ(post("/v1/jobs/cancel", cancel_of(entry)).body.at("locked"), Json::array({entry}));
}

TEST_F(DatabasesApi, AKeyThatMovesHalfCancelledHasMoreLeft) {
  const std::string key = key_at(1), held = make_job(key);
  const std::vector<std::string> keys(ClientStore::kMostOfOneKeyTogether, key);
  ASSERT_EQ(post("/v1/jobs/batch", batch_of(keys)).status, 201);
  backend.database_at(1).lock(std::stoll(held));
  backend.before_work = [&] {
    if (backend.posted_waiting > 0) move(shard_of(key, kDefaultShards), 1, 2);
  };
  const Answer answer = post("/v1/jobs/cancel", R"({"biz_id":")" + key + "\"}");
  backend.before_work = nullptr;
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("cancelled").size(), keys.size());
  EXPECT_EQ(answer.body.at("locked"), Json::array({held}));
  EXPECT_EQ(answer.body.value("more", false), true);
}

const char* const kKeyLists[] = {"", "&status=pending"};  // each is read by a statement of its own

TEST_F(DatabasesApi, AListOfAKeyThatMovesWhileItWaitsIsNotEmpty) {
  for (const std::string more : kKeyLists) {
    const std::string key = key_at(1), list = "/v1/jobs?biz_id=" + key + more;
    const std::string id = make_job(key);
    backend.before_work = [&] { move(shard_of(key, kDefaultShards), 1, 2); };
    const Answer answer = get(list);
    backend.before_work = nullptr;
    EXPECT_EQ(answer.status, 503) << answer.text;
    EXPECT_EQ(answer.retry_after, "1");
    const Answer again = get(list);
    ASSERT_EQ(again.body.at("items").size(), 1U) << again.text;
    EXPECT_EQ(again.body.at("items")[0].at("job_id"), id);
  }
}

// The rows stay in the old database until every node has the new map.
TEST_F(DatabasesApi, RowsThatTheirShardHasLeftAreNotShown) {
  const std::string key = key_at(1), id = make_job(key);
  const std::map<std::string, int> statuses{{"/v1/jobs/" + id, 404},  // it is not where it was looked for again
                                            {"/v1/jobs?biz_id=" + key, 503},
                                            {"/v1/jobs?status=pending&biz_id=" + key, 503}};
  for (const auto& [target, status] : statuses) {
    backend.before_work = [&] { backend.moved[shard_of(key, kDefaultShards)] = 2; };
    const Answer answer = get(target);
    backend.before_work = nullptr;
    backend.moved.clear();
    EXPECT_EQ(answer.status, status) << answer.text;
    EXPECT_EQ(answer.retry_after, status == 503 ? "1" : "");
  }
}

TEST_F(DatabasesApi, AListOfAKeyThatMovesBetweenPagesGoesOnWhereItWas) {
  for (const std::string more : kKeyLists) {
    const std::string key = key_at(1);
    std::vector<std::string> wanted, seen;
    for (int i = 0; i < 5; ++i) wanted.insert(wanted.begin(), make_job(key));
    std::string cursor;
    for (std::size_t pages = 0; pages < wanted.size(); ++pages) {
      const Answer page = get("/v1/jobs?limit=2&biz_id=" + key + more + cursor);
      ASSERT_EQ(page.status, 200) << page.text;
      for (const Json& job : page.body.at("items")) seen.push_back(job.at("job_id"));
      const Json& next = page.body.at("next_cursor");
      if (next.is_null()) break;
      cursor = "&cursor=" + next.get<std::string>();
      if (pages == 0) move(shard_of(key, kDefaultShards), 1, 2);
    }
    EXPECT_EQ(seen, wanted) << more;
  }
}

}  // namespace
}  // namespace tocsin
