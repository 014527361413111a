// What the settings of brokers may say; without any broker.
#include <gtest/gtest.h>

#include "entry/broker_kinds.h"

namespace tocsin {
namespace {

class FixedClock final : public Clock {
 public:
  MonoTime now() const override { return MonoTime(std::chrono::seconds(1000)); }
};

class BrokerSettings : public testing::Test {
 protected:
  BrokerSettings() {
    add_broker_kinds(registry_, AddressGuard(), clock_, [](const Job&) { return std::string("{}"); });
  }

  // The field at fault, "" when there is none.
  std::string fault(const std::string& kind, const std::string& more) {
    BizType type;
    type.type_id = ++last_;
    type.name = "order.unpaid";
    type.handler_kind = kind;
    type.handler_json = R"({"kind":")" + kind + "\"" + more + "}";
    const auto error = registry_.check(type);
    EXPECT_EQ(registry_.can_run(type), !error);
    EXPECT_TRUE(!error || error->message.find("sesame") == std::string::npos);
    return error ? error->field : "";
  }
  // The same of what this node could run, but a type may not ask for.
  std::string refusal(const std::string& kind, const std::string& more) {
    BizType type;
    type.type_id = ++last_;
    type.name = "order.unpaid";
    type.handler_kind = kind;
    type.handler_json = R"({"kind":")" + kind + "\"" + more + "}";
    EXPECT_TRUE(registry_.can_run(type)) << "what stands in the registry fails with the reason";
    const auto error = registry_.check(type);
    return error ? error->field : "";
  }
  static std::string entry_fault(const std::string& json) {
    const auto entry = parse_entry_topic(json, 2);
    return entry ? "" : entry.error().field;
  }

  FixedClock clock_;
  HandlerRegistry registry_;
  int last_ = 0;
};

TEST_F(BrokerSettings, AnEntryNeedsAKnownKind) {
  EXPECT_EQ(entry_fault("{}"), "entry[2].kind");
  EXPECT_EQ(entry_fault(R"({"kind":"pigeon"})"), "entry[2].kind");
  EXPECT_EQ(entry_fault(R"({"kind":5})"), "entry[2].kind");
  EXPECT_EQ(entry_fault("[]"), "entry[2]");
}

#if defined(TOCSIN_HAS_AMQP) && defined(TOCSIN_HAS_REDIS)
TEST_F(BrokerSettings, InternalAddressesAreRefusedWhenTheTypeIsWritten) {
  for (const char* host : {"127.0.0.1", "[::1]", "10.1.2.3", "169.254.169.254", "2130706433", "[::ffff:10.0.0.1]"}) {
    EXPECT_EQ(refusal("amqp", std::string(R"(,"url":"amqp://)") + host + "\""), "handler.url") << host;
    EXPECT_EQ(refusal("redis", std::string(R"(,"url":"redis://)") + host + "\""), "handler.url") << host;
  }
  EXPECT_EQ(refusal("redis", R"(,"url":"redis://localhost")"), "") << "judged when it is resolved";
}
#endif

#ifdef TOCSIN_HAS_AMQP
TEST_F(BrokerSettings, AmqpNamesTheFieldAtFault) {
  EXPECT_EQ(fault("amqp", R"(,"url":"amqp://u:sesame@broker/vhost")"), "");
  EXPECT_EQ(fault("amqp", R"(,"url":"amqp://[2606:4700::1]:5672","exchange":"x","routing_key":"k")"), "");
  for (const char* url : {"", "broker", "http://u:sesame@h", "amqp://", "amqp://:sesame@/", "amqp://h:0",
                          "amqp://h:99999", "amqp://h:-1/", "amqp://u:sesame@h?x=1", "amqp://u:sesame@h/%00"})
    EXPECT_EQ(fault("amqp", R"(,"url":")" + std::string(url) + "\""), "handler.url") << url;
  EXPECT_EQ(fault("amqp", ""), "handler.url");
  EXPECT_EQ(fault("amqp", R"(,"url":5)"), "handler.url");
  EXPECT_EQ(fault("amqp", R"(,"url":"amqp://h","exchange":5)"), "handler.exchange");
  EXPECT_EQ(fault("amqp", R"(,"url":"amqp://h","exchange":")" + std::string(256, 'x') + "\""), "handler.exchange");
  EXPECT_EQ(fault("amqp", R"(,"url":"amqp://h","routing-key":"x")"), "handler.routing-key");
  EXPECT_EQ(entry_fault(R"({"kind":"amqp","url":"amqp://h","queue":"q","prefetch":10})"), "");
  EXPECT_EQ(entry_fault(R"({"kind":"amqp","url":"amqp://h"})"), "entry[2].queue");
  EXPECT_EQ(entry_fault(R"({"kind":"amqp","url":"amqp://h","queue":"q","prefetch":0})"), "entry[2].prefetch");
}
#endif

#ifdef TOCSIN_HAS_KAFKA
TEST_F(BrokerSettings, KafkaNamesTheFieldAtFault) {
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a:9092,b:9092","topic":"t")"), "");
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a","topic":"t","security_protocol":"sasl_ssl",)"
                           R"("sasl_mechanism":"SCRAM-SHA-512","username":"u","password":"sesame")"),
            "");
  EXPECT_EQ(fault("kafka", R"(,"topic":"t")"), "handler.bootstrap_servers");
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a")"), "handler.topic");
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a","topic":"no spaces")"), "handler.topic");
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a","topic":"t","security_protocol":"magic")"),
            "handler.security_protocol");
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a","topic":"t","password":"sesame")"), "handler.password");
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a","topic":"t","security_protocol":"sasl_ssl",)"
                           R"("sasl_mechanism":"PLAIN","username":"u")"),
            "handler.password");
  EXPECT_EQ(fault("kafka", R"(,"bootstrap_servers":"a","topic":"t","acks":"0")"), "handler.acks");
  EXPECT_EQ(entry_fault(R"({"kind":"kafka","bootstrap_servers":"a","topic":"t"})"), "");
  EXPECT_EQ(entry_fault(R"({"kind":"kafka","bootstrap_servers":"a","topic":"t","group":""})"), "entry[2].group");
  EXPECT_EQ(entry_fault(R"({"kind":"kafka","bootstrap_servers":"a","topic":"t","dead_letter_topic":"t"})"),
            "entry[2].dead_letter_topic");
}
#endif

#ifdef TOCSIN_HAS_REDIS
TEST_F(BrokerSettings, RedisNamesTheFieldAtFault) {
  EXPECT_EQ(fault("redis", R"(,"url":"redis://:sesame@h:6379/3","stream":"s","maxlen":1000)"), "");
  EXPECT_EQ(fault("redis", R"(,"url":"redis://h/x")"), "handler.url");
  EXPECT_EQ(fault("redis", R"(,"url":"rediss://h")"), "handler.url");
  EXPECT_EQ(fault("redis", R"(,"url":"redis://h","stream":"")"), "handler.stream");
  EXPECT_EQ(fault("redis", R"(,"url":"redis://h","maxlen":0)"), "handler.maxlen");
  EXPECT_EQ(entry_fault(R"({"kind":"redis","url":"redis://h"})"), "entry[2].kind") << "an exit only";
}
#endif

}  // namespace
}  // namespace tocsin
