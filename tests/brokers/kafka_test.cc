// Kafka against the mock cluster of librdkafka, which lives in this process and speaks Kafka's protocol over loopback.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <set>

#include "integration/live_node.h"

namespace tocsin {
namespace {

struct Record {
  std::string key, body;
  std::map<std::string, std::string> headers;
};

// Thread: owner only, the main thread.
class KafkaCluster {
 public:
  KafkaCluster() : client_(make(RD_KAFKA_PRODUCER, {})) {
    cluster_ = rd_kafka_mock_cluster_new(client_, 1);
    producer_ = make(RD_KAFKA_PRODUCER, {{"bootstrap.servers", servers()}});
  }
  ~KafkaCluster() {
    rd_kafka_destroy(producer_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(client_);
  }

  std::string servers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  void create(const std::string& topic) { rd_kafka_mock_topic_create(cluster_, topic.c_str(), 2, 1); }
  void go_down() { rd_kafka_mock_broker_set_down(cluster_, 1); }
  void come_up() { rd_kafka_mock_broker_set_up(cluster_, 1); }

  void publish(const std::string& topic, const std::string& body, const std::string& key = "",
               const std::string& id = "") {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(1);
    if (!id.empty()) rd_kafka_header_add(headers, "message-id", -1, id.data(), static_cast<ssize_t>(id.size()));
    const auto code = rd_kafka_producev(
        producer_, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    EXPECT_EQ(code, RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void flush() { EXPECT_EQ(rd_kafka_flush(producer_, 30'000), RD_KAFKA_RESP_ERR_NO_ERROR); }

  // Reads a topic from its beginning until `is_enough` says so.
  std::vector<Record> read(const std::string& topic, const std::function<bool(const std::vector<Record>&)>& is_enough) {
    rd_kafka_t* consumer =
        make(RD_KAFKA_CONSUMER,
             {{"bootstrap.servers", servers()}, {"group.id", "probe"}, {"auto.offset.reset", "earliest"}});
    rd_kafka_topic_partition_list_t* parts = rd_kafka_topic_partition_list_new(2);
    for (const int i : {0, 1})
      rd_kafka_topic_partition_list_add(parts, topic.c_str(), i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(consumer, parts);
    rd_kafka_topic_partition_list_destroy(parts);
    std::vector<Record> records;
    eventually([&] {
      while (rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer, 50)) {
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) records.push_back(record_of(*message));
        rd_kafka_message_destroy(message);
      }
      return is_enough(records);
    });
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    return records;
  }

 private:
  static rd_kafka_t* make(rd_kafka_type_t type, const std::map<std::string, std::string>& properties) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    for (const auto& [name, value] : properties) rd_kafka_conf_set(conf, name.c_str(), value.c_str(), nullptr, 0);
    rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
    return rd_kafka_new(type, conf, nullptr, 0);
  }

  static Record record_of(const rd_kafka_message_t& message) {
    Record record{{static_cast<const char*>(message.key), message.key_len},
                  {static_cast<const char*>(message.payload), message.len},
                  {}};
    rd_kafka_headers_t* headers = nullptr;
    rd_kafka_message_headers(&message, &headers);
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         headers && rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
      record.headers[name] = {static_cast<const char*>(value), size};
    return record;
  }

  rd_kafka_t* client_;
  rd_kafka_t* producer_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_;
};

class Kafka : public LiveNode {
 protected:
  Json exit_to(const std::string& topic) {
    return {{"handler", {{"kind", "kafka"}, {"bootstrap_servers", kafka.servers()}, {"topic", topic}}},
            {"backoff", {{"delays_ms", {100}}}},
            {"max_attempts", 1000}};
  }
  std::set<std::string> create_many(const std::string& type, int n) {
    Json jobs = Json::array();
    for (int i = 0; i < n; ++i)
      jobs.push_back({{"biz_type", type}, {"biz_id", "b-" + std::to_string(i)}, {"delay_ms", i % 1000}});
    const Reply reply = rest().post("/v1/jobs/batch", {{"jobs", jobs}});
    EXPECT_EQ(reply.status, 201) << reply.text;
    std::set<std::string> ids;
    for (const Json& item : reply.body["items"]) ids.insert(item["job_id"]);
    return ids;
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

TEST_F(Kafka, AClusterThatGoesDownInMidRunLosesNothingAndRepeatsCarryTheSameId) {
  kafka.create("crash");
  put_type("crash", exit_to("crash"));
  put_noop();
  auto ids = create_many("crash", 3000);
  ASSERT_TRUE(eventually([&] { return count("done") > 200; }));
  kafka.go_down();
  EXPECT_LT(count("done"), 3000) << "in the middle";
  EXPECT_TRUE(becomes(create("noop", 0), "done")) << "others go on";
  const std::string late = create("crash", 0);
  EXPECT_TRUE(eventually([&] { return job(late)["errors"].dump().find("kafka://127.0.0.1") != std::string::npos; }));
  ids.insert(late);
  kafka.come_up();
  ASSERT_TRUE(eventually([&] { return count("done") == 3002; }));
  EXPECT_EQ(ids_of(kafka.read("crash", [&](const auto& all) { return ids_of(all) == ids; })), ids);
}

TEST_F(Kafka, MessagesOfAnEntryBecomeJobsOnceWhateverIsRepeated) {
  kafka.create("in");
  kafka.create("dead");
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    kafka.publish("in", entry("paid"), "order-" + n);
    if (i % 4 == 0) kafka.publish("in", entry("paid"), "order-" + n, "id-" + n);
    if (i % 4 == 0) kafka.publish("in", entry("paid"), "order-" + n, "id-" + n);
  }
  kafka.publish("in", "this is no JSON", "", "bad-1");
  kafka.publish("in", entry("unknown"), "", "bad-2");
  kafka.flush();
  start();
  put_noop("paid");
  start_with_entry("in", "dead");
  EXPECT_TRUE(eventually([&] { return count("done") == 250; }));
  const auto dead = kafka.read("dead", [](const auto& all) { return all.size() >= 2; });
  EXPECT_EQ(ids_of(dead), (std::set<std::string>{"bad-1", "bad-2"}));
  EXPECT_NE(dead.front().headers.at("tocsin-refusal"), "");

  // The next one goes on where this one has committed.
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

TEST_F(Kafka, ANodeKilledWhileItConsumesLosesNothingAndDoublesNothing) {
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

}  // namespace
}  // namespace tocsin
