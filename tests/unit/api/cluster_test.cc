// /v1/nodes and /v1/shards.
#include "support/api_fixture.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class ClusterApi : public ApiTest {
 protected:
  ClusterApi() {
    std::vector<Shard> low, high;
    for (int shard = 0; shard < kDefaultShards - 1; ++shard)  // nobody scans the last one
      (shard < 32 ? low : high).push_back(static_cast<Shard>(shard));
    backend.members = {{7, "a", "active", "1.0", 250ms, low, {{0, 100ms}}},
                       {8, "b", "lost", "1.1", 9s, high, {{0, std::nullopt}}}};
  }
};

TEST_F(ClusterApi, ListsNodesWithoutADatabase) {
  backend.fails = ErrorCode::unavailable;
  EXPECT_EQ(get("/v1/nodes").body, Json::parse(R"({"items":[
    {"node":"a","id":"7","state":"active","heartbeat_age_ms":250,"shards":32,"version":"1.0"},
    {"node":"b","id":"8","state":"lost","heartbeat_age_ms":9000,"shards":31,"version":"1.1"}],"next_cursor":null})"));
}

TEST_F(ClusterApi, ListsEndpointsWithoutADatabase) {
  backend.fails = ErrorCode::unavailable;
  EndpointInfo broker{"amqp", "amqp://broker/orders", "unavailable", 0, 1024, {}, Duration(0), "Connection refused",
                      3s};
  backend.peers = {
      {"webhook", "https://shop.example", "paused", 2, 256, 1500us, 700ms, "timed out", 250ms}, broker, broker};
  EXPECT_EQ(get("/v1/endpoints?limit=1").body.at("items").size(), 2U) << "rows of the same key stay together";
  const std::string cursor = get("/v1/endpoints?limit=1").body.at("next_cursor");
  EXPECT_EQ(get("/v1/endpoints?cursor=" + cursor).body, Json::parse(R"({"node":"node-1","items":[
    {"kind":"webhook","endpoint":"https://shop.example","state":"paused","in_flight":2,"limit":256,"mean_ms":1.5,
     "pause_left_ms":700,"last_error":"timed out","last_error_age_ms":250}],"next_cursor":null})"));
  EXPECT_EQ(get("/v1/endpoints?cursor=x").field(), "cursor");
}

TEST_F(ClusterApi, ListsShardsWithTheirOwnersAndWhatIsDueSoon) {
  const int shard = shard_of("o-1", kDefaultShards);
  EXPECT_EQ(post("/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"o-1","delay_ms":1000})").status, 201);
  make_job("o-1", R"(,"idempotency_key":"far")");
  const Answer answer = get("/v1/shards");
  ASSERT_EQ(answer.body.at("items").size(), 64U) << answer.text;
  EXPECT_EQ(answer.body.at("next_cursor"), nullptr);
  for (int i = 0; i < 64; ++i) {
    const Json& item = answer.body.at("items")[static_cast<std::size_t>(i)];
    EXPECT_EQ(item.at("shard"), i);
    EXPECT_EQ(item.at("database"), "tocsin");
    EXPECT_EQ(item.at("node"), i < 32 ? Json("a") : i < 63 ? Json("b") : Json(nullptr));
    EXPECT_EQ(item.at("scanned_age_ms"), i < 32 ? Json(100) : Json(nullptr));
    EXPECT_EQ(item.at("pending_due_soon"), i == shard ? 1 : 0);
  }
}

TEST_F(ClusterApi, ShowsWhichShardsAreMovingAndWhere) {
  backend.moving = {{5, 1, "copying"}};
  const Json items = get("/v1/shards").body.at("items");
  EXPECT_EQ(items[5].at("move"), (Json{{"to", "db1"}, {"state", "copying"}}));
  EXPECT_FALSE(items[4].contains("move"));
}

TEST_F(ClusterApi, PagesNodesThatComeAndGo) {
  const auto names = [](const Answer& answer) {
    std::vector<std::string> found;
    for (const Json& node : answer.body.at("items")) found.push_back(node.at("node"));
    return found;
  };
  const std::vector<std::string> all = names(get("/v1/nodes"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(get("/v1/nodes?limit=2").body.at("next_cursor"), nullptr);
  const Answer first = get("/v1/nodes?limit=1");
  EXPECT_EQ(names(first), std::vector<std::string>{all[0]});
  const std::string cursor = first.body.at("next_cursor");
  EXPECT_EQ(names(get("/v1/nodes?limit=1&cursor=" + cursor)), std::vector<std::string>{all[1]});
  backend.members.erase(backend.members.begin());
  const Answer second = get("/v1/nodes?limit=1&cursor=" + cursor);
  EXPECT_EQ(names(second), std::vector<std::string>{all[1]}) << "though the one that the cursor names has left";
  EXPECT_EQ(second.body.at("next_cursor"), nullptr);
  EXPECT_EQ(get("/v1/nodes?limit=0").field(), "limit");
  EXPECT_EQ(get("/v1/nodes?limit=1001").field(), "limit");
  EXPECT_EQ(get("/v1/nodes?cursor=nonsense").field(), "cursor");
}

TEST_F(ClusterApi, PagesShards) {
  std::string cursor;
  std::vector<int> seen;
  for (int pages = 0; pages < 4; ++pages) {
    const Answer answer = get("/v1/shards?limit=30" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(answer.status, 200) << answer.text;
    for (const Json& item : answer.body.at("items")) seen.push_back(item.at("shard"));
    if (answer.body.at("next_cursor").is_null()) break;
    cursor = answer.body.at("next_cursor");
  }
  ASSERT_EQ(seen.size(), 64U);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  for (const char* query : {"limit=0", "limit=1001", "limit=x", "cursor=x", "cursor=am9iOjE" /* job:1 */,
                            "cursor=c2hhcmQ6NjM" /* shard:63 */, "cursor=c2hhcmQ6LTE" /* shard:-1 */})
    EXPECT_EQ(get(std::string("/v1/shards?") + query).status, 400) << query;
}

TEST_F(ClusterApi, ShardsNeedTheDatabase) {
  backend.fails = ErrorCode::unavailable;
  EXPECT_EQ(get("/v1/shards").status, 503);
}

}  // namespace
}  // namespace tocsin
