// AMQP against a real RabbitMQ, which is started once for all of these tests.
#include "brokers/broker_node.h"
#include "brokers/rabbitmq.h"

namespace tocsin {
namespace {

class Amqp : public BrokerNode {
 protected:
  static void SetUpTestSuite() { broker_ = std::make_unique<RabbitMq>(); }
  static void TearDownTestSuite() { broker_.reset(); }

  static RabbitMq& broker() { return *broker_; }
  AmqpProbe& probe() {
    if (!probe_) probe_ = std::make_unique<AmqpProbe>(broker().port());
    return *probe_;
  }
  void forget_probe() { probe_.reset(); }

  Json exit_to(const std::string& queue) {
    return exit_type({{"kind", "amqp"}, {"url", broker().url()}, {"routing_key", queue}});
  }

  void start_with_entry(const std::string& queue) {
    start({"--entry", Json({{"kind", "amqp"}, {"url", broker().url()}, {"queue", queue}}).dump()});
  }
  static std::string entry(const std::string& type, const std::string& more = "") {
    return R"({"realTopicName":")" + type + R"(","delayTime":0,"message":{"n":1})" + more + "}";
  }

 private:
  static inline std::unique_ptr<RabbitMq> broker_;
  std::unique_ptr<AmqpProbe> probe_;
};

TEST_F(Amqp, DoneMeansThatTheQueueHasIt) {
  probe().declare("exit.simple");
  put_type("simple", exit_to("exit.simple"));
  const auto ids = create_many("simple", 300);
  EXPECT_TRUE(eventually([&] { return count("done") == 300; }));
  std::set<std::string> seen;
  for (const QueuedMessage& message : probe().take_all("exit.simple")) {
    seen.insert(message.id);
    EXPECT_EQ(message.delivery_mode, 2) << "persistent";
    EXPECT_EQ(message.type, "simple");
    EXPECT_EQ(message.attempt, "1");
    EXPECT_EQ(message.content_type, "application/json");
    const Json body = Json::parse(message.body);
    EXPECT_EQ(body["type"], "simple");
    EXPECT_EQ(body["data"]["job_id"], message.id);
    EXPECT_TRUE(body.contains("timestamp"));
  }
  EXPECT_EQ(seen, ids);
  EXPECT_NE(rest().get("/metrics").text.find("tocsin_amqp_confirmed_total 300"), std::string::npos);
}

TEST_F(Amqp, UnroutableMessagesAreRetriedWithTheReason) {
  put_type("nowhere", exit_to("exit.later"));
  const std::string id = create("nowhere", 0);
  EXPECT_TRUE(fails_with(id, "312 NO_ROUTE")) << first_error(id);
  EXPECT_NE(status(id), "done");
  probe().declare("exit.later");
  EXPECT_TRUE(becomes(id, "done"));
  EXPECT_EQ(probe().take("exit.later")->id, id);
}

TEST_F(Amqp, RefusedMessagesAreRetriedWithTheReason) {
  probe().declare("exit.full", {{"x-max-length", "1"}, {"x-overflow", "reject-publish"}});
  put_type("full", exit_to("exit.full"));
  EXPECT_TRUE(becomes(create("full", 0), "done"));
  const std::string id = create("full", 0);
  EXPECT_TRUE(fails_with(id, "nack")) << first_error(id);
  probe().take("exit.full");
  EXPECT_TRUE(becomes(id, "done"));
}

TEST_F(Amqp, AMissingExchangeAndAWrongPasswordHarmNoOtherType) {
  Json missing = exit_to("exit.good"), stranger = exit_to("exit.good");
  missing["handler"]["exchange"] = "there.is.none";
  stranger["handler"]["url"] = "amqp://guest:sesame@127.0.0.1:" + std::to_string(broker().port());
  probe().declare("exit.good");
  put_type("missing", missing);
  put_type("stranger", stranger);
  put_type("good", exit_to("exit.good"));
  const std::string lost = create("missing", 0), refused = create("stranger", 0);
  EXPECT_TRUE(fails_with(lost, "NOT_FOUND")) << first_error(lost);
  EXPECT_TRUE(fails_with(refused, "ACCESS_REFUSED")) << first_error(refused);
  EXPECT_EQ(first_error(refused).find("sesame"), std::string::npos);
  EXPECT_TRUE(becomes(create("good", 0), "done"));
  EXPECT_EQ(rest().get("/v1/types/stranger").text.find("sesame"), std::string::npos);
}

TEST_F(Amqp, ABrokerKilledInMidRunLosesNothingAndRepeatsCarryTheSameId) {
  probe().declare("exit.crash");
  const auto kill = [&] {
    forget_probe();
    broker().kill();
  };
  const auto ids = survive_an_outage(exit_to("exit.crash"), "amqp://127.0.0.1", kill, [&] { broker().start(); });
  std::set<std::string> seen;
  for (const QueuedMessage& message : probe().take_all("exit.crash")) seen.insert(message.id);
  EXPECT_EQ(seen, ids) << "every job is in the queue, and nothing under another id";
}

TEST_F(Amqp, AnUnavailableBrokerIsReportedAndItsEntriesWait) {
  probe().declare("exit.early");
  probe().declare("entry.early");
  probe().publish("entry.early", entry("noop"), "m-1");
  probe().wait_for_confirms();
  forget_probe();
  broker().kill();
  start_with_entry("entry.early");
  const auto entry_state = [&] {
    const Json ready = rest().get("/readyz").body;
    for (const auto& [name, state] : ready["checks"].items())
      if (name.starts_with("entry ")) return ready["status"].get<std::string>() + ": " + state.get<std::string>();
    return ready.dump();
  };
  EXPECT_TRUE(eventually([&] { return entry_state().starts_with("degraded: "); })) << entry_state();
  waits_for_its_broker(exit_to("exit.early"), "amqp://127.0.0.1", [&] { broker().start(); });
  EXPECT_TRUE(eventually([&] { return count("done") == 3; })) << "and what lay in the entry";
  EXPECT_TRUE(eventually([&] { return entry_state() == "ready: ok"; })) << entry_state();
}

TEST_F(Amqp, ConnectsToInternalAddressesOnlyWhenAllowed) {
  probe().declare("exit.inside");
  Json named = exit_to("exit.inside");
  named["handler"]["url"] = "amqp://localhost:" + std::to_string(broker().port());
  may_be_refused_its_address(named);
}

TEST_F(Amqp, ATypeThatIsRemovedOrChangedKeepsNoConnection) {
  probe().declare("exit.passing");
  keeps_no_connection("tocsin_amqp_connections", exit_to("exit.passing"));
}

TEST_F(Amqp, MessagesOfAnEntryBecomeJobsOnceWhateverIsRepeated) {
  probe().declare("entry.dead");
  probe().declare("entry.in", {{"x-dead-letter-exchange", ""}, {"x-dead-letter-routing-key", "entry.dead"}});
  start_with_entry("entry.in");
  put_type("paid", {{"handler", {{"kind", "noop"}}}});
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    probe().publish("entry.in", entry("paid", ",\"biz_id\":\"order-" + n + "\""), "m-" + n);
    if (i % 4 == 0) probe().publish("entry.in", entry("paid", ",\"biz_id\":\"order-" + n + "\""), "m-" + n);
  }
  probe().publish("entry.in", "this is no JSON", "bad-1");
  probe().publish("entry.in", entry("unknown"), "bad-2");
  probe().publish("entry.in", R"({"realTopicName":"paid","message":1})", "bad-3");
  probe().publish("entry.in", entry("paid"), "alone");
  EXPECT_TRUE(eventually([&] { return count("done") == 201 && probe().depth("entry.dead") == 3; }));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 201);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE biz_id = 'alone' AND idempotency_key = 'alone'"), 1)
      << "the id stands in for the business key";
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE attribute = '{\"n\":1}'"), 201);
  EXPECT_EQ(probe().depth("entry.in"), 0);
  std::set<std::string> dead;
  for (const QueuedMessage& message : probe().take_all("entry.dead")) dead.insert(message.id);
  EXPECT_EQ(dead, (std::set<std::string>{"bad-1", "bad-2", "bad-3"}));
  for (const std::string& id : dead)
    EXPECT_NE(node().log().find(": message " + id + " is refused: "), std::string::npos) << id;
}

TEST_F(Amqp, EqualMessagesWithoutAnIdCreateOneJob) {
  probe().declare("entry.plain");
  start_with_entry("entry.plain");
  put_noop("plain");
  for (int i = 0; i < 3; ++i) probe().publish("entry.plain", entry("plain", ",\"biz_id\":\"a\""));
  probe().publish("entry.plain", entry("plain", ",\"biz_id\":\"b\""));
  EXPECT_TRUE(eventually([&] {
    return rest().get("/metrics").text.find("tocsin_entry_existing_total 2") != std::string::npos && count("done") == 2;
  }));
}

TEST_F(Amqp, ANodeKilledWhileItConsumesLosesAndRepeatsNothing) {
  probe().declare("entry.kill");
  start();
  put_noop("kill");
  for (int i = 0; i < 3000; ++i)
    probe().publish("entry.kill", entry("kill", ",\"biz_id\":\"k-" + std::to_string(i) + "\""), std::to_string(i));
  start_with_entry("entry.kill");
  ASSERT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM tocsin.job") > 100; }));
  node().kill();
  start_with_entry("entry.kill");
  EXPECT_TRUE(eventually([&] { return count("done") == 3000; }));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 3000);
  EXPECT_EQ(node().stop(), 0);
  forget_probe();
  EXPECT_EQ(probe().depth("entry.kill"), 0) << "all acknowledged";
}

TEST_F(Amqp, AnEntryWaitsForItsBrokerAndForItsDatabase) {
  PrivateCluster cluster;
  probe().declare("entry.wait");
  NodeProcess node(
      cluster.url(),
      {"--migrate", "--shards", "8", "--entry",
       Json({{"kind", "amqp"}, {"url", broker().url()}, {"queue", "entry.wait"}, {"prefetch", 20}}).dump()});
  ASSERT_EQ(node.rest().put("/v1/types/wait", {{"handler", {{"kind", "noop"}}}}).status, 201);
  probe().publish("entry.wait", entry("wait"), "first");
  const auto done = [&] { return node.rest().get("/v1/stats").body["totals"].value("done", 0); };
  ASSERT_TRUE(eventually([&] { return done() == 1; }));

  cluster.crash();
  for (int i = 0; i < 100; ++i) probe().publish("entry.wait", entry("wait"), "n-" + std::to_string(i));
  probe().wait_for_confirms();
  EXPECT_TRUE(eventually([&] { return probe().depth("entry.wait") == 80; })) << "no more than the prefetch is taken";
  EXPECT_TRUE(eventually([&] { return node.log().find("waits for the database") != std::string::npos; }));
  forget_probe();
  broker().kill();
  cluster.start();
  broker().start();
  EXPECT_TRUE(eventually([&] { return done() == 101; })) << node.log();
  EXPECT_EQ(node.stop(), 0);
}

}  // namespace
}  // namespace tocsin
