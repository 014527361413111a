// Kafka against the mock cluster of librdkafka.
#include "brokers/broker_node.h"
#include "brokers/forwarder.h"
#include "brokers/kafka_cluster.h"
#include "kafka/kafka_source.h"

namespace tocsin {
namespace {

class Kafka : public BrokerNode {
 protected:
  Json exit_to(const std::string& topic) {
    return exit_type({{"kind", "kafka"}, {"bootstrap_servers", kafka.servers()}, {"topic", topic}});
  }
  static std::set<std::string> ids_of(const std::vector<Record>& records) {
    std::set<std::string> ids;
    for (const Record& record : records) ids.insert(record.headers.at("message-id"));
    return ids;
  }
  void start_with_entry(const std::string& topic, const std::string& dead = "") {
    Json entry = {{"kind", "kafka"}, {"bootstrap_servers", kafka.servers()}, {"topic", topic}};
    if (!dead.empty()) entry["dead_letter_topic"] = dead;
    start({"--entry", entry.dump()});
  }
  static std::string entry(const std::string& type) {
    return R"({"realTopicName":")" + type + R"(","delayTime":0,"message":{"n":1}})";
  }

  KafkaCluster kafka;
};

TEST_F(Kafka, DoneMeansThatTheTopicHasIt) {
  kafka.create("timeouts");
  put_type("simple", exit_to("timeouts"));
  const auto ids = create_many("simple", 300);
  EXPECT_TRUE(eventually([&] { return count("done") == 300; }));
  const auto records = kafka.read("timeouts", [](const auto& all) { return all.size() >= 300; });
  EXPECT_EQ(records.size(), 300U) << "nothing went wrong, so nothing is repeated";
  EXPECT_EQ(ids_of(records), ids);
  const Json body = Json::parse(records.front().body);
  EXPECT_EQ(body["data"]["job_id"], records.front().headers.at("message-id"));
  EXPECT_EQ(body["data"]["biz_id"], records.front().key);
  EXPECT_EQ(records.front().headers.at("type"), "simple");
  EXPECT_EQ(records.front().headers.at("tocsin-attempt"), "1");
}

TEST_F(Kafka, AClusterDownInMidRunLosesNothingAndRepeatsKeepTheirId) {
  kafka.create("crash");
  const auto ids = survive_an_outage(
      exit_to("crash"), "kafka://127.0.0.1", [&] { kafka.go_down(); }, [&] { kafka.come_up(); });
  EXPECT_EQ(ids_of(kafka.read("crash", [&](const auto& all) { return ids_of(all) == ids; })), ids);
}

TEST_F(Kafka, RefusedMessagesFailWithTheErrorOfTheCluster) {
  kafka.create("refused");
  put_type("refused", exit_to("refused"));
  kafka.refuse_once(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
  const std::string id = create("refused", 0);
  EXPECT_TRUE(becomes(id, "done"));
  const Json errors = job(id)["errors"];
  ASSERT_EQ(errors.size(), 1U) << errors.dump();
  EXPECT_NE(errors[0]["message"].get<std::string>().find("authorization"), std::string::npos) << errors.dump();
}

TEST_F(Kafka, AnUnavailableClusterIsReported) {
  kafka.create("early");
  kafka.go_down();
  waits_for_its_broker(exit_to("early"), "kafka://127.0.0.1", [&] { kafka.come_up(); });
}

TEST_F(Kafka, ConnectsToInternalAddressesOnlyWhenAllowed) {
  kafka.create("inside");
  may_be_refused_its_address(exit_to("inside"));
}

// Its list leads to an allowed address, and there the cluster names its broker at another.
TEST_F(Kafka, AForbiddenBrokerIsReported) {
  kafka.create("partly");
  const Forwarder way("127.0.0.2", kafka.port());
  Json type = exit_to("partly");
  type["handler"]["bootstrap_servers"] = "127.0.0.2:" + std::to_string(way.port());
  type["ttr_ms"] = 2000;
  const std::string token = "broker-test-token-0123456789";
  const TokenFile file(token);
  NodeProcess shy(database.url(), {"--token-file", file.path(), "--allow-webhook", "127.0.0.2/32"}, token);
  Rest its(shy.port(), token);
  ASSERT_EQ(its.put("/v1/types/partly", type).status, 201);
  const Reply created = its.post("/v1/jobs", {{"biz_type", "partly"}, {"biz_id", "1"}, {"delay_ms", 0}});
  const std::string job = "/v1/jobs/" + created.body["job_id"].get<std::string>();
  const auto errors = [&] { return its.get(job).body["errors"].dump(); };
  EXPECT_TRUE(eventually([&] { return errors().find("broker 127.0.0.1:") != std::string::npos; })) << errors();
  EXPECT_NE(errors().find("--allow-webhook"), std::string::npos) << errors();
}

TEST_F(Kafka, ATypeThatIsRemovedOrChangedKeepsNoConnection) {
  kafka.create("passing");
  keeps_no_connection("tocsin_kafka_connections", exit_to("passing"));
}

TEST_F(Kafka, MessagesOfAnEntryBecomeJobsOnceWhateverIsRepeated) {
  kafka.create("in");
  kafka.create("dead");
  // First: each partition ends with what would be told as existing if it came again.
  kafka.publish("in", "this is no JSON", "", "bad-1");
  kafka.publish("in", entry("unknown"), "", "bad-2");
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    kafka.publish("in", entry("paid"), "order-" + n);
    if (i % 4 == 0) kafka.publish("in", entry("paid"), "order-" + n, "id-" + n);
    if (i % 4 == 0) kafka.publish("in", entry("paid"), "order-" + n, "id-" + n);
  }
  kafka.flush();
  start();
  put_noop("paid");
  start_with_entry("in", "dead");
  EXPECT_TRUE(eventually([&] { return count("done") == 250; }));
  const auto dead = kafka.read("dead", [](const auto& all) { return all.size() >= 2; });
  EXPECT_EQ(ids_of(dead), (std::set<std::string>{"bad-1", "bad-2"})) << dead.back().headers.at("tocsin-refusal");
  EXPECT_NE(dead.front().headers.at("tocsin-refusal"), "");

  // The next one continues where this one has committed.
  EXPECT_EQ(node().stop(), 0);
  start_with_entry("in", "dead");
  kafka.publish("in", entry("paid"), "the-last", "last");
  kafka.flush();
  EXPECT_TRUE(eventually([&] { return count("done") == 251; }));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 251);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE biz_id = 'the-last' AND idempotency_key = 'last'"),
            1);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE idempotency_key LIKE 'in/%'"), 200);
  EXPECT_NE(rest().get("/metrics").text.find("tocsin_entry_existing_total 0"), std::string::npos);
}

// Its headers make a dead letter larger than what came.
TEST_F(Kafka, ARefusedMessageOfAnySizeHoldsUpNoOther) {
  kafka.create("in");
  kafka.create("dead");
  start();
  put_noop("paid");
  const std::string large(999'900, 'x');
  kafka.publish("in", large, "");
  kafka.publish("in", entry("paid"), "order-1");
  kafka.flush();
  start_with_entry("in", "dead");
  EXPECT_TRUE(eventually([&] { return count("done") == 1; }));
  EXPECT_EQ(kafka.read("dead", [](const auto& all) { return all.size() == 1; }).front().body.size(), large.size());

  ASSERT_EQ(node().stop(), 0);
  kafka.publish("in", "this is no JSON", "", "bad");
  kafka.publish("in", entry("paid"), "order-2");
  kafka.flush();
  kafka.refuse_once(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
  start_with_entry("in", "dead");
  EXPECT_TRUE(eventually([&] { return count("done") == 2; }));
  const auto dead = kafka.read("dead", [](const auto& all) { return all.size() == 2; });
  EXPECT_EQ(dead.back().headers.at("message-id"), "bad");
  EXPECT_EQ(dead.back().body, "") << "the topic does not take it";
}

TEST_F(Kafka, ANodeKilledWhileItConsumesLosesAndRepeatsNothing) {
  kafka.create("kill");
  for (int i = 0; i < 3000; ++i) kafka.publish("kill", entry("kill"), "k-" + std::to_string(i));
  kafka.flush();
  start();
  put_noop("kill");
  start_with_entry("kill");
  ASSERT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM tocsin.job") > 100; }));
  node().kill();
  start_with_entry("kill");
  EXPECT_TRUE(eventually([&] { return count("done") == 3000; }));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 3000);
}

// The second cluster has nothing of the first but the name of its topic.
TEST_F(Kafka, ARecreatedTopicCreatesNewJobs) {
  constexpr int kMessages = 20;
  KafkaCluster anew;
  start();
  put_noop("paid");
  int n = 0;
  for (KafkaCluster* cluster : {&kafka, &anew}) {
    cluster->create("again");
    for (int i = 0; i < kMessages; ++i) cluster->publish("again", entry("paid"), "order-" + std::to_string(i));
    cluster->flush();
    start({"--entry", Json{{"kind", "kafka"}, {"bootstrap_servers", cluster->servers()}, {"topic", "again"}}.dump()});
    n += kMessages;
    EXPECT_TRUE(eventually([&] { return count("done") == n; })) << count("done");
  }
  EXPECT_EQ(database.number("SELECT count(DISTINCT biz_id) FROM tocsin.job"), kMessages);
}

// Offsets begin again at 0 there: what they name now must not pass for what they named before.
TEST(KafkaMessages, OfARecreatedTopicHaveNewIds) {
  EXPECT_EQ(position_id("t", 1, 0, 1'700'000'000'000), position_id("t", 1, 0, 1'700'000'000'000)) << "however often";
  EXPECT_NE(position_id("t", 1, 0, 1'700'000'000'000), position_id("t", 1, 0, 1'700'000'000'001));
  EXPECT_NE(position_id("t", 1, 0, 0), position_id("t", 1, 0, 1'700'000'000'000));
}

}  // namespace
}  // namespace tocsin
