// What becomes of jobs, from a caller's REST call to the outcome.
#include <atomic>
#include <mutex>
#include <thread>

#include "integration/live_node.h"

namespace tocsin {
namespace {

class Jobs : public LiveNode {};

TEST_F(Jobs, FireOnTimeAndNeverEarly) {
  put_noop();
  std::vector<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(create("noop", 300 + i));
  for (const std::string& id : ids) ASSERT_TRUE(becomes(id, "done"));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time"), 0);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at IS NULL OR finished_at < started_at"), 0);
  const Json done = job(ids[0]);
  EXPECT_EQ(done["attempts"], 1);
  EXPECT_GE(done["lateness_ms"].get<double>(), 0);
  RecordProperty(
      "median_lateness_ms",
      database.query("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY lateness_ms) FROM tocsin.job")[0][0].c_str());
}

TEST_F(Jobs, AreDeliveredWithTheirHeadersAndBody) {
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  const std::string id = create({{"biz_type", "order.unpaid"},
                                 {"biz_id", "订单-1"},
                                 {"delay_ms", 100},
                                 {"attribute", {{"amount", 12.5}, {"note", "é"}}}});
  ASSERT_TRUE(becomes(id, "done"));
  ASSERT_EQ(receiver.count(), 1U);
  const Delivery delivery = receiver.deliveries()[0];
  EXPECT_EQ(delivery.headers.at("webhook-id"), id);
  EXPECT_EQ(delivery.headers.at("tocsin-attempt"), "1");
  EXPECT_EQ(delivery.headers.at("content-type"), "application/json");
  EXPECT_EQ(delivery.headers.at("user-agent").substr(0, 7), "tocsin/");
  EXPECT_TRUE(delivery.headers.contains("webhook-timestamp"));
  EXPECT_EQ(delivery.body["type"], "order.unpaid");
  EXPECT_EQ(delivery.body["timestamp"], job(id)["action_time"]);
  EXPECT_EQ(delivery.body["data"]["biz_id"], "订单-1");
  EXPECT_EQ(delivery.body["data"]["attribute"], Json({{"amount", 12.5}, {"note", "é"}}));
}

TEST_F(Jobs, AreRetriedThenDeadThenRevived) {
  receiver.answer(500);
  put_type("ticket.stale",
           {{"handler", receiver.handler()}, {"max_attempts", 3}, {"backoff", {{"delays_ms", {20, 40}}}}});
  const std::string id = create("ticket.stale", 0);
  ASSERT_TRUE(becomes(id, "dead"));
  Json dead = job(id);
  EXPECT_EQ(dead["attempts"], 3);
  ASSERT_EQ(dead["errors"].size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(dead["errors"][static_cast<std::size_t>(i)]["attempt"], i + 1);
    EXPECT_NE(dead["errors"][static_cast<std::size_t>(i)]["message"].get<std::string>().find("500"), std::string::npos);
  }
  ASSERT_EQ(receiver.count(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(receiver.deliveries()[i].headers.at("tocsin-attempt"), std::to_string(i + 1));

  receiver.answer(204);
  ASSERT_EQ(rest().post("/v1/jobs/" + id + "/retry").status, 200);
  ASSERT_TRUE(becomes(id, "done"));
  const Json done = job(id);
  EXPECT_EQ(done["attempts"], 1);
  EXPECT_EQ(done["errors"].size(), 3U) << "kept";
  EXPECT_EQ(rest().post("/v1/jobs/" + id + "/retry").status, 409) << "dead only";
}

TEST_F(Jobs, CancelledInTimeNeverFire) {
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  const std::string cancelled = create("order.unpaid", 1500), witness = create("order.unpaid", 2000);
  const Reply reply = rest().post("/v1/jobs/" + cancelled + "/cancel");
  ASSERT_EQ(reply.status, 200) << reply.text;
  EXPECT_EQ(reply.body["result"], "cancelled");
  ASSERT_TRUE(becomes(witness, "done"));
  EXPECT_EQ(status(cancelled), "cancelled");
  ASSERT_EQ(receiver.count(), 1U);
  EXPECT_EQ(receiver.deliveries()[0].headers.at("webhook-id"), witness);
  const Reply again = rest().post("/v1/jobs/" + cancelled + "/cancel");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.body["result"], "finished");
}

TEST_F(Jobs, RunningOnesCannotBeCancelled) {
  receiver.hold();
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  const std::string id = create("order.unpaid", 0);
  ASSERT_TRUE(becomes(id, "running"));
  const Reply reply = rest().post("/v1/jobs/" + id + "/cancel");
  EXPECT_EQ(reply.status, 409);
  EXPECT_EQ(reply.body["result"], "running");
  receiver.release();
  EXPECT_TRUE(becomes(id, "done"));
}

TEST_F(Jobs, MovedEarlierFireAtTheNewTime) {
  put_noop();
  const std::string near = create("noop", 4000), far = create("noop", 3'600'000);
  for (const std::string& id : {near, far}) {
    ASSERT_EQ(rest().post("/v1/jobs/" + id + "/reschedule", {{"delay_ms", 100}}).status, 200);
    ASSERT_TRUE(becomes(id, "done"));
    EXPECT_LT(job(id)["lateness_ms"].get<double>(), 3000) << "not at its old time";
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time"), 0);
}

TEST_F(Jobs, ChangedBySqlFireAtTheNewTimeOrNever) {
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  const std::string cancelled = create({{"biz_type", "order.unpaid"}, {"biz_id", "paid"}, {"delay_ms", 1500}});
  const std::string later = create("order.unpaid", 1500);
  const std::string near = create("order.unpaid", 4000), far = create("order.unpaid", 3'600'000);
  EXPECT_EQ(database.query("SELECT result FROM tocsin.cancel_jobs('paid')")[0][0].as<std::string>(), "cancelled");
  const auto move = [&](const std::string& id, const std::string& delay) {
    const auto moved = database.query("SELECT tocsin.reschedule_job(" + id + ", now() + interval '" + delay + "')");
    EXPECT_EQ(moved[0][0].as<std::string>(), "rescheduled");
  };
  move(later, "2 s");
  for (const std::string& id : {near, far}) {
    move(id, "100 ms");
    ASSERT_TRUE(becomes(id, "done"));
    EXPECT_LT(job(id)["lateness_ms"].get<double>(), 3000) << "not at its old time";
  }
  ASSERT_TRUE(becomes(later, "done"));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time"), 0);
  EXPECT_EQ(receiver.count(), 3U);
  EXPECT_EQ(status(cancelled), "cancelled");
}

TEST_F(Jobs, LatenessIsTheSameInEveryAnswer) {
  put_noop();
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  std::vector<std::string> ids;
  for (const char* type : {"noop", "order.unpaid"}) {
    ids.push_back(create(type, 0));
    ids.push_back(create(type, 3'600'000));
    const Json past{{"action_time", "2020-01-01T00:00:00Z"}};
    ASSERT_EQ(rest().post("/v1/jobs/" + ids.back() + "/reschedule", past).status, 200);
    ids.push_back(create(type, 3'600'000));
    ASSERT_EQ(rest().post("/v1/jobs/" + ids.back() + "/run").status, 200);
  }
  for (const std::string& id : ids) {
    ASSERT_TRUE(becomes(id, "done"));
    const double shown = job(id)["lateness_ms"].get<double>();
    EXPECT_GE(shown, 0) << job(id);
    EXPECT_LT(shown, 60'000) << "not since 2020: " << job(id);
    EXPECT_EQ(database.query("SELECT lateness_ms FROM tocsin.job WHERE job_id = " + id)[0][0].as<double>(), shown);
  }
  const Json measured = rest().get("/v1/stats").body["lateness_ms"];
  EXPECT_EQ(measured["n"], ids.size());
  EXPECT_LT(measured["max"].get<double>(), 60'000);
}

TEST_F(Jobs, MovedLaterFireOnceAtTheNewTime) {
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  const std::string id = create("order.unpaid", 1500);
  ASSERT_EQ(rest().post("/v1/jobs/" + id + "/reschedule", {{"delay_ms", 2000}}).status, 200);
  ASSERT_TRUE(becomes(id, "done"));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time"), 0);
  EXPECT_EQ(receiver.count(), 1U);
  EXPECT_EQ(job(id)["attempts"], 1);
}

// Their cancels share statements. A caller that returns goods to the stock on 200 must not do it twice.
TEST_F(Jobs, OneOfManyConcurrentCancelsSucceeds) {
  put_noop();
  for (int round = 0; round < 5; ++round) {
    const std::string id = create("noop", 3'600'000);
    std::atomic<int> told{0}, finished{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 8; ++i) {
      callers.emplace_back([&, port = node().port()] {
        const Reply reply = Rest(port).post("/v1/jobs/" + id + "/cancel");
        told += reply.status == 200;
        finished += reply.status == 409 && reply.body["result"] == "finished";
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(finished, 7);
  }
}

TEST_F(Jobs, RunNowFiresAtOnceAndKeepsItsDeadline) {
  put_noop();
  const std::string id = create("noop", 3'600'000);
  const Json before = job(id);
  ASSERT_EQ(rest().post("/v1/jobs/" + id + "/run").status, 200);
  ASSERT_TRUE(becomes(id, "done"));
  EXPECT_EQ(job(id)["action_time"], before["action_time"]);
}

TEST_F(Jobs, OfADeadNodeRunAgainWhenTheirLeaseEnds) {
  receiver.hold();
  put_type("order.unpaid", {{"handler", receiver.handler()}, {"ttr_ms", 2000}});
  const std::string id = create("order.unpaid", 0);
  ASSERT_TRUE(eventually([&] { return receiver.count() == 1; }));
  node().kill();
  start();
  receiver.release();
  ASSERT_TRUE(becomes(id, "done"));
  const Json done = job(id);
  EXPECT_EQ(done["attempts"], 2);
  ASSERT_EQ(done["errors"].size(), 1U);
  EXPECT_NE(done["errors"][0]["message"].get<std::string>().find("lease"), std::string::npos);
  EXPECT_EQ(receiver.count(), 2U);
}

TEST_F(Jobs, AReceiverThatNeverAnswersUsesAttemptsOnly) {
  receiver.hold();
  put_type("stuck",
           {{"handler", receiver.handler()}, {"ttr_ms", 600}, {"max_attempts", 2}, {"backoff", {{"delays_ms", {50}}}}});
  put_noop("quick");
  std::vector<std::string> stuck;
  for (int i = 0; i < 4; ++i) stuck.push_back(create("stuck", 0));  // more would trip the pause of the endpoint
  const std::string quick = create("quick", 100);
  EXPECT_TRUE(becomes(quick, "done"));
  for (const std::string& id : stuck) ASSERT_TRUE(becomes(id, "dead"));
  EXPECT_EQ(job(stuck[0])["errors"].size(), 2U);
}

TEST_F(Jobs, LockedByAnIdleTransactionDelayNoOthers) {
  put_noop();
  std::vector<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(create("noop", 3000));
  pqxx::connection idle(database.url());
  auto lock = std::make_unique<pqxx::work>(idle);
  lock->exec1("SELECT 1 FROM tocsin.job_live WHERE job_id = " + ids[50] + " FOR UPDATE");
  ASSERT_TRUE(eventually([&] { return count("done") == 99; }));
  EXPECT_EQ(status(ids[50]), "pending");
  EXPECT_LT(database.number("SELECT max(lateness_ms)::bigint FROM tocsin.job"), 5000) << "the others did not wait";
  lock.reset();
  EXPECT_TRUE(becomes(ids[50], "done"));
}

// Two lists are read at a time, and 64 wait; what keeps promises has threads of its own. The table that the lists wait
// for is one that no write needs.
TEST_F(Jobs, SlowListsDelayNoWrite) {
  constexpr int kLists = 70, kTaken = 2 + 64;
  put_noop();
  put_type("ticket", {{"handler", {{"kind", "pull"}}}, {"ttr_ms", 600'000}});
  const std::string moved = create("noop", 3'600'000), cancelled = create("noop", 3'600'000);
  const auto lease = [&] {
    create("ticket", 0);
    const Json job = rest().post("/v1/types/ticket/lease", {{"max", 1}, {"wait_ms", 30'000}}).body["items"][0];
    return Json{{"job_id", job["job_id"]}, {"lease_token", job["lease_token"]}};
  };
  const Json extended = lease(), acked = lease();
  Json nacked = lease();
  nacked["delay_ms"] = 3'600'000;
  pqxx::connection business(database.url());
  auto lock = std::make_unique<pqxx::work>(business);
  lock->exec("LOCK TABLE tocsin.job_history_dead IN ACCESS EXCLUSIVE MODE");
  std::mutex mutex;
  std::vector<Reply> answers;
  const auto answered = [&] {
    const std::scoped_lock guard(mutex);
    return static_cast<int>(answers.size());
  };
  std::vector<std::jthread> callers;
  for (int i = 1; i <= kLists; ++i) {
    callers.emplace_back([&, i, port = node().port()] {
      const Reply reply = Rest(port).get("/v1/jobs?status=dead&limit=" + std::to_string(i));
      const std::scoped_lock guard(mutex);
      answers.push_back(reply);
    });
  }
  EXPECT_TRUE(eventually([&] { return answered() == kLists - kTaken; }, std::chrono::seconds(20)));
  const auto settle = [&](const std::string& verb, const Json& item, Json body = Json::object()) {
    body["items"] = Json::array({item});
    const Reply reply = rest().post("/v1/leases/" + verb, body);
    EXPECT_EQ(reply.body["items"][0]["result"], "ok") << verb << ": " << reply.text;
  };
  settle("ack", acked);
  settle("nack", nacked);
  settle("extend", extended, {{"ttr_ms", 600'000}});
  const Json batch{{"jobs", Json::array({{{"biz_type", "noop"}, {"biz_id", "b"}, {"delay_ms", 3'600'000}}})}};
  const Reply created = rest().post("/v1/jobs/batch", batch);
  EXPECT_EQ(created.status, 201) << created.text;
  EXPECT_EQ(rest().post("/v1/jobs/" + moved + "/reschedule", {{"delay_ms", 7'200'000}}).status, 200);
  EXPECT_EQ(rest().post("/v1/jobs/" + cancelled + "/cancel").status, 200);
  EXPECT_LT(answered(), kLists / 2) << "the promises waited for the lists";
  lock.reset();
  callers.clear();
  int refused = 0;
  for (const Reply& reply : answers) {
    if (reply.status != 429) continue;
    ++refused;
    EXPECT_EQ(reply.body["detail"], "Too much is waiting for the database.") << reply.text;
  }
  EXPECT_EQ(refused, kLists - kTaken);
}

// A nack reads the numbers of its attempts first, from live jobs alone.
TEST_F(Jobs, SlowListsOfKeysDelayNoNack) {
  put_type("ticket", {{"handler", {{"kind", "pull"}}}, {"ttr_ms", 600'000}});
  create("ticket", 0);
  const Json leased = rest().post("/v1/types/ticket/lease", {{"max", 1}, {"wait_ms", 30'000}}).body["items"][0];
  pqxx::connection business(database.url());
  auto lock = std::make_unique<pqxx::work>(business);
  lock->exec("LOCK TABLE tocsin.job_history_dead IN ACCESS EXCLUSIVE MODE");
  std::atomic<int> listed = 0;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&listed, port = node().port()] {
      Rest(port).get("/v1/jobs?biz_id=b");
      ++listed;
    });
  }
  EXPECT_TRUE(eventually([&] {
    return database.number(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'tocsin "
               "api'") >= 1;
  }));
  const Json item{{"job_id", leased["job_id"]}, {"lease_token", leased["lease_token"]}, {"delay_ms", 3'600'000}};
  const Reply reply = rest().post("/v1/leases/nack", {{"items", Json::array({item})}});
  EXPECT_EQ(reply.body["items"][0]["result"], "ok") << reply.text;
  EXPECT_EQ(listed, 0) << "the nack waited for the lists of keys";
  lock.reset();
}

TEST_F(Jobs, OfAPausedTypeWaitUntilItResumes) {
  put_noop();
  ASSERT_EQ(rest().post("/v1/types/noop/pause").status, 200);
  put_noop("other");
  const std::string held = create("noop", 0), witness = create("other", 1500);
  ASSERT_TRUE(becomes(witness, "done"));
  EXPECT_EQ(status(held), "pending");
  ASSERT_EQ(rest().post("/v1/types/noop/resume").status, 200);
  EXPECT_TRUE(becomes(held, "done"));
}

}  // namespace
}  // namespace tocsin
