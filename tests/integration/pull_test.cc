// Pull types: consumers lease due jobs over HTTP and say what became of them.
#include <arpa/inet.h>
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <set>
#include <thread>

#include "integration/live_node.h"

namespace tocsin {
namespace {

// A connection with one request on it: thousands of clients with a thread each would be too many.
class Socket {
 public:
  Socket(int port, const std::string& request) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
      throw std::runtime_error("cannot connect, or not send");
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // What has come by now.
  const std::string& answer() {
    char text[4096];
    const ssize_t n = ::recv(fd_, text, sizeof text, MSG_DONTWAIT);
    return received_.append(text, static_cast<std::size_t>(std::max<ssize_t>(0, n)));
  }

 private:
  const int fd_;
  std::string received_;
};

class Pull : public LiveNode {
 protected:
  void put_pull(const std::string& name = "ticket", Json more = Json::object()) {
    more["handler"] = {{"kind", "pull"}};
    put_type(name, more);
  }
  Json lease(int max, int wait_ms, const std::string& type = "ticket", Json more = Json::object()) {
    more["max"] = max;
    more["wait_ms"] = wait_ms;
    const Reply reply = rest().post("/v1/types/" + type + "/lease", more);
    EXPECT_EQ(reply.status, 200) << reply.text;
    return reply.status == 200 ? reply.body["items"] : Json::array();
  }
  // One job, which must come.
  Json lease_one(Json more = Json::object()) {
    Json items = lease(1, 30'000, "ticket", std::move(more));
    EXPECT_EQ(items.size(), 1U);
    return items.size() == 1 ? items[0] : Json::object();
  }
  static Json named(const Json& job) { return {{"job_id", job["job_id"]}, {"lease_token", job["lease_token"]}}; }
  std::string settle(const std::string& verb, Json item, Json more = Json::object()) {
    more["items"] = Json::array({std::move(item)});
    const Reply reply = rest().post("/v1/leases/" + verb, more);
    EXPECT_EQ(reply.status, 200) << reply.text;
    return reply.status == 200 ? reply.body["items"][0]["result"].get<std::string>() : "";
  }
  static Json named_all(const Json& jobs) {
    Json items = Json::array();
    for (const Json& job : jobs) items.push_back(named(job));
    return items;
  }
  void create_many(const std::string& type, int n, int delay_ms) {
    for (int made = 0; made < n;) {
      Json jobs = Json::array();
      for (; made < n && jobs.size() < 5000; ++made)
        jobs.push_back({{"biz_type", type}, {"biz_id", type + std::to_string(made)}, {"delay_ms", delay_ms}});
      ASSERT_EQ(rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status, 201);
    }
  }
  double gauge(const std::string& name) {
    const std::string text = Rest(node().port()).get("/metrics").text;
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  bool are_waiting(int consumers) {
    return eventually([&] { return gauge("tocsin_waiting_consumers") == consumers; });
  }
};

TEST_F(Pull, JobsAreLeasedAndAcknowledged) {
  put_pull();
  const std::string id =
      create({{"biz_type", "ticket"}, {"biz_id", "t-1"}, {"delay_ms", 300}, {"attribute", {{"level", 2}}}});
  const Json leased = lease_one({{"ttr_ms", 60'000}});
  EXPECT_EQ(leased["job_id"], id);
  EXPECT_EQ(leased["biz_id"], "t-1");
  EXPECT_EQ(leased["biz_type"], "ticket");
  EXPECT_EQ(leased["attribute"], Json({{"level", 2}}));
  EXPECT_EQ(leased["attempts"], 1);
  EXPECT_EQ(leased["lease_until"], job(id)["fire_at"]);
  EXPECT_GE(leased["started_at"], leased["action_time"]) << "never early";
  EXPECT_EQ(status(id), "running");
  EXPECT_EQ(settle("ack", {{"job_id", id}, {"lease_token", "0123456789abcdef"}}), "stale");
  EXPECT_EQ(settle("ack", named(leased)), "ok");
  EXPECT_EQ(status(id), "done");
  EXPECT_EQ(settle("ack", named(leased)), "stale");
  EXPECT_EQ(gauge("tocsin_running_jobs"), 0);
}

TEST_F(Pull, AJobThatBecomesDueEndsTheLongPoll) {
  put_pull();
  std::thread consumer([&, port = node().port()] {
    const Reply reply = Rest(port).post("/v1/types/ticket/lease", {{"max", 10}, {"wait_ms", 60'000}});
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body["items"].size(), 1U);
  });
  EXPECT_TRUE(are_waiting(1));
  const std::string id = create("ticket", 200);
  consumer.join();
  RecordProperty("lateness_ms", std::to_string(job(id)["lateness_ms"].get<double>()));
}

TEST_F(Pull, NothingDueIsAnEmptyAnswer) {
  put_pull();
  create("ticket", 3'600'000);
  EXPECT_TRUE(lease(10, 0).empty());
  EXPECT_TRUE(lease(10, 300).empty());
  EXPECT_EQ(gauge("tocsin_waiting_consumers"), 0);
}

TEST_F(Pull, WithoutAConsumerNothingIsClaimed) {
  put_pull();
  put_noop();
  const std::string id = create("ticket", 0), witness = create("noop", 1500);
  ASSERT_TRUE(becomes(witness, "done"));
  EXPECT_EQ(status(id), "pending");
  EXPECT_EQ(job(id)["attempts"], 0);
  const std::string why = rest().get("/v1/jobs/" + id + "/explain").text;
  EXPECT_NE(why.find("no consumer asks"), std::string::npos) << why;
  EXPECT_EQ(rest().post("/v1/jobs/" + id + "/cancel").status, 200) << "due, and still nobody's";
  EXPECT_TRUE(lease(10, 0).empty());
}

TEST_F(Pull, NackBringsTheJobBackAfterItsDelayAndDeadAfterTheLastAttempt) {
  put_pull("ticket", {{"max_attempts", 3}, {"backoff", {{"delays_ms", {100}}}}});
  const std::string id = create("ticket", 0);
  Json item = named(lease_one());
  item["delay_ms"] = 700;
  item["error"] = "not yet";
  EXPECT_EQ(settle("nack", item), "ok");
  const Json waiting = job(id);
  EXPECT_EQ(waiting["status"], "pending");
  EXPECT_EQ(database.number("SELECT (fire_at - gmt_modified >= interval '699 ms')::integer FROM tocsin.job"), 1);
  EXPECT_EQ(settle("nack", item), "stale");
  Json second = lease_one();
  EXPECT_EQ(second["attempts"], 2);
  EXPECT_EQ(second["errors"][0]["message"], "not yet");
  EXPECT_GE(database.number("SELECT (extract(epoch FROM gmt_modified) * 1000)::bigint FROM tocsin.job"),
            database.number("SELECT (extract(epoch FROM gmt_create) * 1000)::bigint + 700 FROM tocsin.job"));
  EXPECT_EQ(settle("nack", named(second)), "ok") << "the type's backoff";
  EXPECT_EQ(settle("nack", named(lease_one())), "ok");
  EXPECT_EQ(status(id), "dead");
  EXPECT_EQ(job(id)["errors"].size(), 3U);
}

TEST_F(Pull, ALeaseEndsUnlessItIsExtendedAndOldTokensAreRefused) {
  put_pull("ticket", {{"ttr_ms", 3000}});
  const std::string id = create("ticket", 0);
  const Json first = lease_one();
  EXPECT_EQ(settle("extend", named(first), {{"ttr_ms", 60'000}}), "ok");
  EXPECT_TRUE(lease(1, 4000).empty()) << "held beyond its first end";
  EXPECT_EQ(settle("extend", named(first), {{"ttr_ms", 1}}), "ok") << "shorter is an extension, too";
  const Json second = lease_one();
  EXPECT_EQ(second["job_id"], id);
  EXPECT_EQ(second["attempts"], 2);
  EXPECT_NE(second["lease_token"], first["lease_token"]);
  for (const char* verb : {"ack", "nack"}) EXPECT_EQ(settle(verb, named(first)), "stale");
  EXPECT_EQ(settle("extend", named(first), {{"ttr_ms", 60'000}}), "stale");
  EXPECT_EQ(settle("ack", named(second)), "ok");
  EXPECT_EQ(job(id)["errors"].size(), 1U) << "the lease that ended";
}

// The threads that read what a nack needs are few: acks of locked rows wait elsewhere.
TEST_F(Pull, AcksOfLockedRowsDelayNoOtherCall) {
  constexpr std::size_t kLocked = 40;
  put_pull("ticket", {{"ttr_ms", 600'000}});
  create_many("ticket", kLocked + 8, 0);
  Json jobs = Json::array();
  while (jobs.size() < kLocked + 8)
    for (const Json& job : lease(100, 30'000)) jobs.push_back(job);
  pqxx::connection business(database.url());
  auto lock = std::make_unique<pqxx::work>(business);
  for (std::size_t i = 0; i < kLocked; ++i)
    lock->exec1("SELECT 1 FROM tocsin.job_live WHERE job_id = " + jobs[i]["job_id"].get<std::string>() + " FOR UPDATE");
  std::atomic<std::size_t> answered{0};
  std::vector<std::thread> consumers;
  for (std::size_t i = 0; i < kLocked; ++i) {
    consumers.emplace_back([&, i, port = node().port()] {
      Rest(port).post("/v1/leases/ack", {{"items", Json::array({named(jobs[i])})}});
      ++answered;
    });
  }
  for (std::size_t i = kLocked; i < jobs.size(); ++i) EXPECT_EQ(settle("nack", named(jobs[i])), "ok");
  for (int i = 0; i < 4; ++i) create_many("ticket", 1, 3'600'000);
  EXPECT_LT(answered, kLocked / 2) << "the nacks or the batches waited for the locks";
  lock.reset();
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(count("done"), static_cast<int>(kLocked));
}

// Batches and cancels of many jobs wait for other transactions, but not on the threads that everything else needs.
TEST_F(Pull, BatchesWithLockedKeysDelayNoOtherCall) {
  put_pull("ticket", {{"ttr_ms", 600'000}});
  create_many("ticket", 1, 0);
  const Json leased = lease_one();
  pqxx::connection business(database.url());
  auto open = std::make_unique<pqxx::work>(business);
  open->exec("SELECT tocsin.create_job('ticket', 'held', clock_timestamp() + interval '1 hour', NULL, 'k')");
  std::atomic<int> answered{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i, port = node().port()] {
      Json jobs = Json::array();
      for (const std::string& key : {std::string("held"), "free" + std::to_string(i)})
        jobs.push_back({{"biz_type", "ticket"}, {"biz_id", key}, {"idempotency_key", "k"}, {"delay_ms", 3'600'000}});
      const std::string partial = i % 2 == 0 ? "" : "?partial=true";
      EXPECT_EQ(Rest(port).post("/v1/jobs/batch" + partial, {{"jobs", jobs}}).status, 201);
      ++answered;
    });
  }
  const std::string waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  EXPECT_TRUE(eventually([&] { return database.number(waiting) == 4; })) << "all four at the same time";
  Json nack = named(leased);
  nack["delay_ms"] = 3'600'000;
  EXPECT_EQ(settle("nack", nack), "ok");
  create_many("ticket", 2, 3'600'000);
  EXPECT_EQ(answered, 0) << "nack and batch waited for the key";
  open.reset();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE idempotency_key = 'k'"), 5) << "each once";
  EXPECT_NE(rest().get("/metrics").text.find("\ntocsin_lock_pool_wait_seconds_count 4\n"), std::string::npos);
}

TEST_F(Pull, ALeaseThatHasEndedIsStaleAlsoWhenTheJobIsUnclaimed) {
  put_pull("ticket", {{"max_attempts", 1}});
  const std::string id = create("ticket", 0);
  const Json leased = lease_one({{"ttr_ms", 50}});
  ASSERT_TRUE(becomes(id, "dead")) << "its only attempt is over";
  EXPECT_EQ(settle("ack", named(leased)), "stale");
}

TEST_F(Pull, NoJobIsEverLeasedTwiceAtOnce) {
  put_pull("ticket", {{"ttr_ms", 600'000}});
  put_noop();
  create_many("ticket", 20'000, 500);
  std::mutex mutex;
  std::map<std::string, int> seen;
  std::vector<std::thread> consumers;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) {
    consumers.emplace_back([&, port = node().port()] {
      Rest own(port);
      while (true) {
        const Json jobs =
            own.post("/v1/types/ticket/lease", {{"max", 500}, {"wait_ms", 3000}}).body.value("items", Json::array());
        if (jobs.empty()) return;
        const Reply acked = own.post("/v1/leases/ack", {{"items", named_all(jobs)}});
        std::lock_guard lock(mutex);
        for (const Json& job : jobs) ++seen[job["job_id"]];
        for (const Json& item : acked.body["items"]) EXPECT_EQ(item["result"], "ok");
      }
    });
  }
  const std::string other = create("noop", 300);
  EXPECT_TRUE(becomes(other, "done"));
  for (std::thread& consumer : consumers) consumer.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  RecordProperty("seconds_for_20000", std::to_string(took.count()));
  EXPECT_EQ(seen.size(), 20'000U);
  for (const auto& [id, times] : seen) EXPECT_EQ(times, 1) << id;
  EXPECT_EQ(count("done"), 20'000 + 1);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE attempts <> 1 OR started_at < action_time"), 0);
}

TEST_F(Pull, ABacklogBeyondMemoryIsServedAndHidesNoOtherType) {
  start({"--queue-capacity", "1000"});
  put_pull();
  put_pull("other");
  put_noop();
  create_many("ticket", 6000, 0);
  create_many("other", 3000, 0);
  const std::string witness = create("noop", 2500);
  EXPECT_TRUE(becomes(witness, "done"));
  EXPECT_EQ(count("pending"), 9000);
  std::set<std::string> seen;
  while (seen.size() < 6000) {
    const Json jobs = lease(500, 20'000);
    ASSERT_FALSE(jobs.empty()) << seen.size();
    for (const Json& job : jobs) seen.insert(job["job_id"]);
    ASSERT_EQ(rest().post("/v1/leases/ack", {{"items", named_all(jobs)}}).status, 200);
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE biz_type = 'other' AND status <> 'pending'"), 0);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE attempts > 1"), 0);
}

TEST_F(Pull, APausedTypeIsNotLeased) {
  put_pull();
  const std::string id = create("ticket", 0);
  ASSERT_EQ(rest().post("/v1/types/ticket/pause").status, 200);
  EXPECT_TRUE(lease(1, 500).empty());
  EXPECT_EQ(job(id)["attempts"], 0);
  ASSERT_EQ(rest().post("/v1/types/ticket/resume").status, 200);
  EXPECT_EQ(lease_one()["job_id"], id);
}

TEST_F(Pull, ADisconnectedConsumerGetsNothing) {
  put_pull();
  {
    httplib::Client impatient("127.0.0.1", node().port());
    impatient.set_read_timeout(0, 300'000);
    EXPECT_FALSE(impatient.Post("/v1/types/ticket/lease", R"({"max":10,"wait_ms":60000})", "application/json"));
    impatient.stop();
  }
  EXPECT_TRUE(are_waiting(0));
  const std::string id = create("ticket", 0);
  EXPECT_EQ(lease_one()["job_id"], id);
  EXPECT_EQ(job(id)["attempts"], 1) << "the first consumer's did not count";
}

TEST_F(Pull, ATerminatedNodeAnswersItsPollsAndLosesNothing) {
  put_pull();
  std::vector<std::thread> consumers;
  std::atomic<int> empty{0};
  for (int i = 0; i < 5; ++i) {
    consumers.emplace_back([&, port = node().port()] {
      const Reply reply = Rest(port).post("/v1/types/ticket/lease", {{"max", 10}, {"wait_ms", 60'000}});
      EXPECT_EQ(reply.status, 200);
      empty += reply.body.value("items", Json()).empty();
    });
  }
  ASSERT_TRUE(are_waiting(5));
  create("ticket", 3'600'000);
  EXPECT_EQ(node().stop(), 0);
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(empty, 5);
  EXPECT_EQ(count("pending"), 1);
  EXPECT_EQ(database.number("SELECT attempts FROM tocsin.job"), 0);
}

TEST_F(Pull, LeasesOutliveTheNodeThatGaveThem) {
  put_pull();
  const std::string id = create("ticket", 0);
  const Json leased = lease_one();
  node().kill();
  start();
  EXPECT_EQ(settle("ack", named(leased)), "ok");
  EXPECT_EQ(status(id), "done");
}

TEST_F(Pull, ThousandsOfPollsWaitAndOneTooManyIsRefused) {
  put_pull();
  put_pull("other");
  constexpr std::size_t kMost = 3000;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 65'536);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  const std::string request =
      "POST /v1/types/ticket/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
      "\r\nContent-Length: 27\r\n\r\n{\"max\":1,\"wait_ms\":60000}  ";
  std::vector<std::unique_ptr<Socket>> waiting;
  for (std::size_t i = 0; i < kMost; ++i) waiting.push_back(std::make_unique<Socket>(node().port(), request));
  ASSERT_TRUE(are_waiting(static_cast<int>(kMost)));
  EXPECT_EQ(rest().post("/v1/types/other/lease", {{"max", 1}, {"wait_ms", 0}}).status, 429);
  create_many("ticket", 2000, 0);
  EXPECT_TRUE(are_waiting(static_cast<int>(kMost) - 2000));
  EXPECT_TRUE(eventually([&] { return count("running") == 2000; })) << "one each, but " << count("running");
  EXPECT_TRUE(eventually([&] {
    std::size_t served = 0;
    for (const auto& consumer : waiting) served += consumer->answer().find("\"lease_token\"") != std::string::npos;
    return served == 2000;
  }));
}

TEST_F(Pull, TheExamplesWork) {
  put_pull("ticket", {{"max_attempts", 1}});
  const std::string url = "http://127.0.0.1:" + std::to_string(node().port());
  const std::vector<std::vector<std::string>> programs{
      {"/usr/bin/python3", TOCSIN_EXAMPLES "/consumer.py", url, "ticket", "--jobs", "3"},
      {TOCSIN_EXAMPLE_CONSUMER, url.substr(7), "ticket", "3"}};
  for (const auto& program : programs) {
    const std::string good = create("ticket", 0), late = create("ticket", 400);
    const std::string bad = create({{"biz_type", "ticket"}, {"delay_ms", 100}, {"attribute", "poison"}});
    const Ran ran = run(program);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.out.find(job(late)["biz_id"].get<std::string>() + " is due since"), std::string::npos) << ran.out;
    EXPECT_EQ(status(good), "done");
    EXPECT_EQ(status(late), "done");
    EXPECT_EQ(status(bad), "dead");
    EXPECT_NE(job(bad)["errors"][0]["message"].get<std::string>().find("cannot handle this"), std::string::npos);
  }
}

TEST_F(Pull, IsKnownToTheCommandLine) {
  const std::string url = "http://127.0.0.1:" + std::to_string(node().port());
  const Ran ran = run_tocsin({"type", "put", "ticket", "--handler", "pull", "--ttr", "5s", "--url", url});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(rest().get("/v1/types/ticket").body["handler"], Json({{"kind", "pull"}}));
  EXPECT_EQ(rest().put("/v1/types/x", {{"handler", {{"kind", "pull"}, {"url", "http://x"}}}}).status, 400);
}

}  // namespace
}  // namespace tocsin
