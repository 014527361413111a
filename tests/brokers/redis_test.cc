// Redis streams against a real redis-server.
#include "brokers/broker_node.h"
#include "brokers/redis_server.h"

namespace tocsin {
namespace {

class Redis : public BrokerNode {
 protected:
  Json exit_to(const std::string& stream) {
    return exit_type({{"kind", "redis"}, {"url", redis.url()}, {"stream", stream}});
  }
  std::set<std::string> ids_in(const std::string& stream) {
    const auto words = redis.ask({"XRANGE", stream, "-", "+"});
    std::set<std::string> ids;
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "message-id") ids.insert(words[i + 1]);
    return ids;
  }

  RedisServerProcess redis;
};

TEST_F(Redis, DoneMeansThatTheStreamHasIt) {
  put_type("simple", exit_to("timeouts"));
  const auto ids = create_many("simple", 300);
  EXPECT_TRUE(eventually([&] { return count("done") == 300; }));
  EXPECT_EQ(ids_in("timeouts"), ids);
  const auto entry = redis.ask({"XRANGE", "timeouts", "-", "+", "COUNT", "1"});
  std::map<std::string, std::string> fields;
  for (std::size_t i = 1; i + 1 < entry.size(); i += 2) fields[entry[i]] = entry[i + 1];
  EXPECT_EQ(fields["type"], "simple");
  EXPECT_EQ(fields["tocsin-attempt"], "1");
  EXPECT_EQ(Json::parse(fields["body"])["data"]["job_id"], fields["message-id"]);
  EXPECT_EQ(Json::parse(fields["body"])["data"]["biz_id"], fields["biz-id"]);
}

TEST_F(Redis, AStreamIsTrimmedToAboutItsLength) {
  Json type = exit_to("short");
  type["handler"]["maxlen"] = 100;
  put_type("short", type);
  create_many("short", 1000);
  EXPECT_TRUE(eventually([&] { return count("done") == 1000; }));
  EXPECT_LT(std::stoi(redis.ask({"XLEN", "short"}).at(0)), 400);
}

TEST_F(Redis, RefusedEntriesAreRetriedWithTheReason) {
  redis.ask({"SET", "taken", "a string"});
  Json stranger = exit_to("stream");
  stranger["handler"]["url"] = redis.url("wrong");
  put_type("taken", exit_to("taken"));
  put_type("stranger", stranger);
  const std::string id = create("taken", 0), refused = create("stranger", 0);
  EXPECT_TRUE(fails_with(id, "WRONGTYPE"));
  EXPECT_TRUE(fails_with(refused, "WRONGPASS"));
  redis.ask({"DEL", "taken"});
  EXPECT_TRUE(becomes(id, "done"));
}

TEST_F(Redis, AServerKilledInMidRunLosesNothingAndRepeatsCarryTheSameId) {
  const auto ids = survive_an_outage(
      exit_to("crash"), "redis://127.0.0.1", [&] { redis.kill(); }, [&] { redis.start(); });
  EXPECT_EQ(ids_in("crash"), ids);
}

TEST_F(Redis, AnUnavailableServerIsReported) {
  redis.kill();
  waits_for_its_broker(exit_to("early"), "redis://127.0.0.1", [&] { redis.start(); });
  EXPECT_EQ(ids_in("early").size(), 1U);
}

TEST_F(Redis, ATypeThatIsRemovedOrChangedKeepsNoConnection) {
  keeps_no_connection("tocsin_redis_connections", exit_to("passing"));
}

}  // namespace
}  // namespace tocsin
