// Limits of types whose jobs are worked on outside: consumers, and receivers of asynchronous webhooks.
#include <atomic>
#include <thread>

#include "integration/live_node.h"

namespace tocsin {
namespace {

class FlowOfLeases : public LiveNode {
 protected:
  static constexpr const char* kType = "ticket";

  void put_pull(Json more) {
    more["handler"] = {{"kind", "pull"}};
    put_type(kType, more);
  }
  void create_many(int n) {
    Json jobs = Json::array();
    for (int i = 0; i < n; ++i) jobs.push_back({{"biz_type", kType}, {"biz_id", std::to_string(i)}, {"delay_ms", 0}});
    ASSERT_EQ(rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status, 201);
  }
  // Two nodes, each with half of the shards.
  std::unique_ptr<NodeProcess> start_two() {
    start({"--node-name", "a", "--heartbeat-timeout", "2s"});
    auto other = std::make_unique<NodeProcess>(
        database.url(), std::vector<std::string>{"--node-name", "b", "--heartbeat-timeout", "2s"});
    EXPECT_TRUE(eventually([&] {
      const Json items = rest().get("/v1/nodes").body["items"];
      return items.size() == 2 && items[0]["shards"] == 4 && items[1]["shards"] == 4;
    }));
    return other;
  }
  static Json lease(Rest& at, int max, int wait_ms, Json more = Json::object()) {
    more["max"] = max;
    more["wait_ms"] = wait_ms;
    const Reply reply = at.post("/v1/types/" + std::string(kType) + "/lease", more);
    EXPECT_EQ(reply.status, 200) << reply.text;
    Json items = Json::array();
    for (const Json& job : reply.body.value("items", Json::array()))
      items.push_back({{"job_id", job["job_id"]}, {"lease_token", job["lease_token"]}});
    return items;
  }
  // Asks until it has so many.
  static Json lease_all(Rest& at, std::size_t n, const Json& more = Json::object()) {
    Json all = Json::array();
    EXPECT_TRUE(eventually([&] {
      for (Json& item : lease(at, static_cast<int>(n - all.size()), 500, more)) all.push_back(std::move(item));
      return all.size() == n;
    })) << all.size();
    return all;
  }
  static std::size_t settle(Rest& at, const std::string& verb, const Json& items, Json more = Json::object()) {
    more["items"] = items;
    const Reply reply = at.post("/v1/leases/" + verb, more);
    EXPECT_EQ(reply.status, 200) << reply.text;
    std::size_t ok = 0;
    for (const Json& item : reply.body.value("items", Json::array())) ok += item["result"] == "ok";
    return ok;
  }
  bool are_permits_in_use(int n) {
    const std::string line =
        "\ntocsin_permits_in_use{biz_type=\"ticket\",limit=\"max_running\"} " + std::to_string(n) + "\n";
    return eventually([&] { return rest().get("/metrics").text.find(line) != std::string::npos; });
  }
};

// Acknowledged at the other node, always: without its hearing of that, one round would be all for a minute.
TEST_F(FlowOfLeases, ConsumersOfTwoNodesNeverHoldMoreThanMaxRunning) {
  const auto other = start_two();
  put_pull({{"max_running", 5}, {"ttr_ms", 60'000}});
  create_many(40);
  std::atomic<int> held{0}, most{0}, acked{0};
  std::vector<std::thread> consumers;
  for (int i = 0; i < 4; ++i) {
    consumers.emplace_back(
        [&, here = i % 2 ? node().port() : other->port(), there = i % 2 ? other->port() : node().port()] {
          Rest from(here), to(there);
          while (acked < 40) {
            const Json items = lease(from, 4, 500);
            if (items.empty()) continue;
            const int now_held = held += static_cast<int>(items.size());
            for (int seen = most; seen < now_held && !most.compare_exchange_weak(seen, now_held);) {
            }
            held -= static_cast<int>(items.size());
            EXPECT_EQ(settle(to, "ack", items), items.size());
            acked += static_cast<int>(items.size());
          }
        });
  }
  EXPECT_TRUE(eventually([&] {
    EXPECT_LE(database.number("SELECT count(*) FROM tocsin.job_live WHERE status = 1"), 5);
    return acked >= 40;
  }));
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_LE(most, 5);
  EXPECT_EQ(count("done"), 40);
  EXPECT_TRUE(are_permits_in_use(0));
}

TEST_F(FlowOfLeases, APermitIsFreeWhenItsLeaseEndsAndALateAckFreesNone) {
  put_pull({{"max_running", 2}, {"ttr_ms", 1500}});
  create_many(6);
  const Json late = lease_all(rest(), 2);
  EXPECT_TRUE(lease(rest(), 6, 0).empty());
  const Json next = lease_all(rest(), 2, {{"ttr_ms", 60'000}});  // longer than the type's: told to the store first
  EXPECT_EQ(settle(rest(), "ack", late), 0U) << "stale";
  EXPECT_TRUE(lease(rest(), 6, 1000).empty());
  EXPECT_EQ(settle(rest(), "ack", next), 2U);
  EXPECT_EQ(settle(rest(), "ack", next), 0U);
  EXPECT_EQ(lease_all(rest(), 2, {{"ttr_ms", 60'000}}).size(), 2U);
  EXPECT_TRUE(lease(rest(), 6, 1000).empty());
}

TEST_F(FlowOfLeases, ALoweredLimitHoldsAsLeasesAreReturned) {
  put_pull({{"max_running", 3}, {"ttr_ms", 60'000}});
  create_many(6);
  const Json held = lease_all(rest(), 3);
  put_pull({{"max_running", 1}, {"ttr_ms", 60'000}});
  EXPECT_EQ(settle(rest(), "ack", Json::array({held[0], held[1]})), 2U);
  EXPECT_TRUE(lease(rest(), 6, 1500).empty());
  EXPECT_EQ(settle(rest(), "nack", Json::array({held[2]})), 1U);
  EXPECT_EQ(lease_all(rest(), 1).size(), 1U);
  EXPECT_TRUE(lease(rest(), 6, 0).empty());
}

TEST_F(FlowOfLeases, LeasesOfAKilledNodeKeepTheirPermitsWhileTheyAreExtended) {
  const auto other = start_two();
  put_pull({{"max_running", 3}, {"ttr_ms", 5000}});
  create_many(9);
  Json held = lease_all(other->rest(), 3);
  other->kill();
  // The dead node's permits are reserved for eight seconds: its time-out, a lease, and a second for what is on its way.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(13);
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_EQ(settle(rest(), "extend", held, {{"ttr_ms", 5000}}), 3U);
    ASSERT_TRUE(lease(rest(), 9, 500).empty());
  }
  EXPECT_EQ(settle(rest(), "ack", Json::array({held[0], held[1]})), 2U);
  EXPECT_EQ(lease_all(rest(), 2).size(), 2U);
  // The third consumer has died, too.
  EXPECT_EQ(lease_all(rest(), 3).size(), 3U) << "nothing leaks";
}

TEST_F(FlowOfLeases, ANodeThatStopsLeavesPermitsToItsLeases) {
  auto other = start_two();
  put_pull({{"max_running", 3}, {"ttr_ms", 5000}});
  create_many(9);
  const Json held = lease_all(other->rest(), 2);
  EXPECT_EQ(other->stop(), 0);
  const Json mine = lease_all(rest(), 1);
  EXPECT_EQ(settle(rest(), "extend", held, {{"ttr_ms", 60'000}}), 2U);
  EXPECT_TRUE(lease(rest(), 9, 1000).empty());
  EXPECT_EQ(settle(rest(), "ack", held), 2U);
  EXPECT_EQ(lease_all(rest(), 2).size(), 2U);
}

TEST_F(FlowOfLeases, AnAsynchronousWebhookKeepsItsPermitUntilItIsAcknowledged) {
  receiver.answer(202);
  Json handler = receiver.handler();
  handler["async"] = true;
  put_type(kType, {{"handler", handler}, {"max_running", 2}, {"ttr_ms", 60'000}});
  create_many(5);
  ASSERT_TRUE(eventually([&] { return receiver.count() == 2; }));
  const std::string waiting =
      database.query("SELECT job_id FROM tocsin.job WHERE status = 'pending' LIMIT 1")[0][0].c_str();
  EXPECT_TRUE(eventually([&] {
    const std::string why = rest().get("/v1/jobs/" + waiting + "/explain").body.value("reason", "");
    return why.find("2 of max_running 2 run in the cluster") != std::string::npos;
  }));
  for (std::size_t n = 0; n < 5; ++n) {
    ASSERT_TRUE(eventually([&] { return receiver.count() == std::min<std::size_t>(5, n + 2); })) << n;
    const Delivery delivery = receiver.deliveries().at(n);
    const Json item{{"job_id", delivery.body["data"]["job_id"]},
                    {"lease_token", delivery.headers.at("tocsin-lease-token")}};
    EXPECT_LE(database.number("SELECT count(*) FROM tocsin.job_live WHERE status = 1"), 2);
    EXPECT_EQ(settle(rest(), "ack", Json::array({item})), 1U);
  }
  EXPECT_EQ(count("done"), 5);
}

TEST_F(FlowOfLeases, ARateHoldsForLeases) {
  put_pull({{"rate_per_s", 20}});
  create_many(80);
  std::size_t n = 0;
  EXPECT_TRUE(eventually([&] {
    const Json items = lease(rest(), 100, 1000);
    n += items.size();
    if (!items.empty()) settle(rest(), "ack", items);
    return n == 80;
  }));
  // In no second more than the rate and what had come together.
  EXPECT_LE(database.number("SELECT max(n) FROM (SELECT count(*) OVER (ORDER BY started_at RANGE BETWEEN interval "
                            "'1 second' PRECEDING AND CURRENT ROW) AS n FROM tocsin.job) x"),
            42);
}

}  // namespace
}  // namespace tocsin
