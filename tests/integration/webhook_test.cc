// Webhooks from a whole node: what receivers see, acknowledge later, or never answer.

#include "integration/live_node.h"
#include "support/server.h"
#include "support/temp_file.h"

namespace tocsin {
namespace {

const char kFirstSecret[] = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
const char kSecondSecret[] = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

class Webhooks : public LiveNode {
 protected:
  void put_webhook(const std::string& name, const Json& settings = Json::object(), Json more = Json::object()) {
    more["handler"] = receiver.handler();
    more["handler"].update(settings);
    put_type(name, more);
  }
  Delivery delivery(std::size_t n) {
    EXPECT_TRUE(eventually([&] { return receiver.count() > n; }));
    return receiver.deliveries().at(n);
  }
  // ack, nack or extend; "ok" or "stale".
  std::string settle(const std::string& verb, const Delivery& delivery, Json item = Json::object(),
                     Json more = Json::object()) {
    item["job_id"] = delivery.headers.at("webhook-id");
    item["lease_token"] = delivery.headers.at("tocsin-lease-token");
    more["items"] = Json::array({item});
    const Reply reply = rest().post("/v1/leases/" + verb, more);
    EXPECT_EQ(reply.status, 200) << reply.text;
    return reply.status == 200 ? reply.body["items"][0]["result"].get<std::string>() : reply.text;
  }
};

TEST_F(Webhooks, AnAsynchronousReceiverAcknowledgesLater) {
  receiver.answer(202);
  put_webhook("order.unpaid", {{"async", true}}, {{"ttr_ms", 60'000}});
  const std::string id = create("order.unpaid", 0);
  const Delivery first = delivery(0);
  EXPECT_EQ(status(id), "running");
  EXPECT_EQ(settle("extend", first, {}, {{"ttr_ms", 120'000}}), "ok");
  EXPECT_EQ(settle("ack", first), "ok");
  EXPECT_EQ(status(id), "done");
  EXPECT_EQ(settle("ack", first), "stale");
  EXPECT_EQ(receiver.count(), 1u);
}

TEST_F(Webhooks, AnAsynchronousReceiverMayFail) {
  receiver.answer(202);
  put_webhook("order.unpaid", {{"async", true}}, {{"ttr_ms", 60'000}, {"max_attempts", 2}});
  const std::string id = create("order.unpaid", 0);
  EXPECT_EQ(settle("nack", delivery(0), {{"delay_ms", 0}, {"error", "no stock"}}), "ok");
  const Delivery second = delivery(1);
  EXPECT_EQ(second.headers.at("tocsin-attempt"), "2");
  EXPECT_NE(second.headers.at("tocsin-lease-token"), receiver.deliveries()[0].headers.at("tocsin-lease-token"));
  EXPECT_EQ(settle("nack", second), "ok");
  const Json dead = job(id);
  EXPECT_EQ(dead["status"], "dead");
  EXPECT_EQ(dead["errors"][0]["message"], "no stock");
}

TEST_F(Webhooks, UnacknowledgedJobsAreDeliveredAgainAfterTheirLease) {
  receiver.answer(202);
  put_webhook("order.unpaid", {{"async", true}, {"timeout_ms", 500}}, {{"ttr_ms", 1000}});
  const std::string id = create("order.unpaid", 0);
  const Delivery first = delivery(0), second = delivery(1);
  EXPECT_EQ(second.headers.at("tocsin-attempt"), "2");
  EXPECT_EQ(settle("ack", first), "stale");
  receiver.answer(200);
  EXPECT_TRUE(becomes(id, "done"));
}

TEST_F(Webhooks, AreVerifiedByThePackageThatReceiversUse) {
  put_webhook("order.unpaid", {{"secret", Json::array({kSecondSecret, kFirstSecret})}});
  create("order.unpaid", 0);
  const Delivery signed_twice = delivery(0);
  const auto verify = [&](const std::string& secret, const std::string& body) {
    const std::string headers = Json(signed_twice.headers).dump();
    return run({"/usr/bin/env", "node", TOCSIN_VERIFY_WEBHOOK, TOCSIN_NODE_FOLDER, secret, headers, body});
  };
  for (const char* secret : {kFirstSecret, kSecondSecret}) {
    const Ran ran = verify(secret, signed_twice.text);
    EXPECT_EQ(ran.out, "ok\n") << ran.err;
  }
  EXPECT_NE(verify("whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCBrZXk=", signed_twice.text).exit_code, 0);
  EXPECT_NE(verify(kFirstSecret, signed_twice.text + " ").exit_code, 0);
}

TEST_F(Webhooks, HiddenSecretsAreKeptWhenPutBack) {
  put_webhook("order.unpaid", {{"secret", Json::array({kSecondSecret, kFirstSecret})}});
  const Json shown = rest().get("/v1/types/order.unpaid").body["handler"];
  EXPECT_EQ(shown["secret"], Json::array({"whsec_***", "whsec_***"}));
  const auto put_secret = [&](const Json& secret) {
    Json handler = shown;
    handler["secret"] = secret;
    return rest().put("/v1/types/order.unpaid", {{"handler", handler}});
  };
  const auto stored = [&] {
    return Json::parse(database.query("SELECT handler->'secret' FROM tocsin.biz_type")[0][0].as<std::string>());
  };
  EXPECT_EQ(put_secret(shown["secret"]).status, 200);
  EXPECT_EQ(stored(), Json::array({kSecondSecret, kFirstSecret}));
  EXPECT_EQ(put_secret("whsec_***").status, 200) << "the end of a change of keys: the first stays";
  EXPECT_EQ(stored(), kSecondSecret);
  EXPECT_EQ(put_secret(Json::array({kFirstSecret, "whsec_***"})).status, 200) << "its beginning";
  EXPECT_EQ(stored(), Json::array({kFirstSecret, kSecondSecret}));
  const Reply too_many = put_secret(Json::array({"whsec_***", "whsec_***", "whsec_***"}));
  EXPECT_EQ(too_many.status, 400);
  EXPECT_EQ(too_many.body["field"], "handler.secret");
}

TEST_F(Webhooks, WrongSettingsAreRefusedByName) {
  const auto webhook = [](const Json& settings) {
    Json handler = {{"kind", "webhook"}, {"url", "http://127.0.0.1:1/"}};
    handler.update(settings);
    return Json{{"handler", handler}};
  };
  Json too_short = webhook({{"timeout_ms", 2000}}), no_delays = webhook(Json::object()), negative = no_delays;
  too_short["ttr_ms"] = 1000;
  no_delays["backoff"]["delays_ms"] = Json::array();
  negative["backoff"]["delays_ms"] = {100, -1};
  const std::pair<Json, const char*> table[] = {
      {webhook({{"url", "ftp://127.0.0.1/"}}), "handler.url"},
      {webhook({{"url", "http://"}}), "handler.url"},
      {webhook({{"url", 5}}), "handler.url"},
      {webhook({{"secret", "no base64"}}), "handler.secret"},
      {webhook({{"secret", "whsec_no*base64"}}), "handler.secret"},
      {webhook({{"secret", {kFirstSecret, "whsec_no*base64"}}}), "handler.secret[1]"},
      {too_short, "handler.timeout_ms"},
      {no_delays, "backoff.delays_ms"},
      {negative, "backoff.delays_ms[1]"},
  };
  put_webhook("good");
  for (const auto& [type, field] : table) {
    for (const char* name : {"new", "good"}) {
      const Reply reply = rest().put(std::string("/v1/types/") + name, type);
      EXPECT_EQ(reply.status, 400) << type;
      EXPECT_EQ(reply.body.value("field", ""), field) << type << reply.text;
    }
  }
  EXPECT_EQ(rest().get("/v1/types/new").status, 404);
  EXPECT_TRUE(becomes(create("good", 0), "done")) << "as it was";
}

TEST_F(Webhooks, CallInternalAddressesOnlyWhenAllowed) {
  const std::string token = "webhook-test-token-0123456789";
  const TokenFile file(token);
  const auto put_to = [&](NodeProcess& node, const std::string& url) {
    return Rest(node.port(), token).put("/v1/types/t", {{"handler", {{"kind", "webhook"}, {"url", url}}}});
  };
  {
    NodeProcess shy(database.url(), {"--token-file", file.path()}, token);
    for (const char* url : {"http://127.0.0.1:1/", "http://2130706433/", "http://[::ffff:127.0.0.1]/",
                            "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/"}) {
      const Reply reply = put_to(shy, url);
      EXPECT_TRUE(reply.status == 400 || reply.status == 422) << url << " " << reply.text;
      EXPECT_EQ(reply.body["field"], "handler.url") << url;
    }
    // A name passes here; what it resolves to does not.
    const std::string named = "http://localhost" + receiver.url().substr(receiver.url().rfind(':'));
    EXPECT_EQ(put_to(shy, named).status, 201);
    const Reply created =
        Rest(shy.port(), token).post("/v1/jobs", {{"biz_type", "t"}, {"biz_id", "1"}, {"delay_ms", 0}});
    const std::string job = "/v1/jobs/" + created.body["job_id"].get<std::string>();
    EXPECT_TRUE(eventually([&] { return !Rest(shy.port(), token).get(job).body["errors"].empty(); }));
    EXPECT_EQ(receiver.count(), 0u);
  }
  NodeProcess told(database.url(), {"--token-file", file.path(), "--allow-webhook", "127.0.0.0/8"}, token);
  EXPECT_TRUE(eventually([&] { return receiver.count() == 1; })) << "the same job, by the node that may";
  EXPECT_EQ(put_to(told, "http://10.0.0.1/").body["field"], "handler.url");
}

TEST_F(Webhooks, ADeadEndpointIsNotCalledAndShownAsOpen) {
  put_webhook("alive");
  put_type("dead", {{"handler", {{"kind", "webhook"}, {"url", "http://127.0.0.1:" + std::to_string(free_port())}}},
                    {"max_attempts", 1000},
                    {"backoff", {{"delays_ms", Json::array({0})}}}});
  std::vector<std::string> dead;
  for (int i = 0; i < 50; ++i) dead.push_back(create("dead", 0));
  const auto is_paused = [&] {
    const Json told = rest().get("/v1/jobs/" + dead.back() + "/explain").body;
    return told.value("reason", "").find("has not answered") != std::string::npos;
  };
  EXPECT_TRUE(eventually(is_paused));
  EXPECT_TRUE(eventually(
      [&] { return rest().get("/metrics").text.find("tocsin_webhook_paused_endpoints 1") != std::string::npos; }));
  for (int i = 0; i < 20; ++i) create("alive", 0);
  EXPECT_TRUE(eventually([&] { return receiver.count() == 20; }));
  // Without a pause each of them would be retried as fast as the database allows.
  EXPECT_LT(database.number("SELECT sum(attempts) FROM tocsin.job WHERE biz_type = 'dead'"), 500);
}

}  // namespace
}  // namespace tocsin
