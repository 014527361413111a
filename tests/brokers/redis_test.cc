// Redis streams against a real redis-server.
#include <hiredis/hiredis.h>
#include <signal.h>

#include <filesystem>
#include <set>

#include "support/server.h"
#include "integration/live_node.h"

namespace tocsin {
namespace {

// A redis-server of the test's own; what it has answered is on disk.
class RedisServerProcess {
 public:
  RedisServerProcess()
      : port_(free_port()), folder_(required_env("TOCSIN_TEST_DIR") + "/redis-" + std::to_string(port_)) {
    std::filesystem::create_directories(folder_);
    start();
  }
  ~RedisServerProcess() {
    kill();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void start() {
    process_ = std::make_unique<Process>(std::vector<std::string>{
        "/usr/bin/redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1", "--dir", folder_,
        "--appendonly", "yes", "--appendfsync", "always", "--requirepass", "sesame"});
    if (!eventually([&] { return !ask({"PING"}).empty(); })) throw std::runtime_error("redis: " + process_->out());
  }
  void kill() {
    process_->signal(SIGKILL);
    process_->wait();
  }

  std::string url(const std::string& password = "sesame") const {
    return "redis://:" + password + "@127.0.0.1:" + std::to_string(port_);
  }

  // All strings of the answer, one after the other; empty when there is none.
  std::vector<std::string> ask(const std::vector<std::string>& words) const {
    std::vector<std::string> out;
    std::unique_ptr<redisContext, void (*)(redisContext*)> redis(redisConnect("127.0.0.1", port_), redisFree);
    if (!redis || redis->err) return out;
    freeReplyObject(redisCommand(redis.get(), "AUTH sesame"));
    std::vector<const char*> texts;
    for (const std::string& word : words) texts.push_back(word.c_str());
    auto* reply =
        static_cast<redisReply*>(redisCommandArgv(redis.get(), static_cast<int>(texts.size()), texts.data(), nullptr));
    if (reply) collect(*reply, out);
    freeReplyObject(reply);
    return out;
  }

 private:
  static void collect(const redisReply& reply, std::vector<std::string>& out) {
    if (reply.str) out.emplace_back(reply.str, reply.len);
    if (reply.type == REDIS_REPLY_INTEGER) out.push_back(std::to_string(reply.integer));
    for (std::size_t i = 0; i < reply.elements; ++i) collect(*reply.element[i], out);
  }

  int port_;
  std::string folder_;
  std::unique_ptr<Process> process_;
};

class Redis : public LiveNode {
 protected:
  Json exit_to(const std::string& stream) {
    return {{"handler", {{"kind", "redis"}, {"url", redis.url()}, {"stream", stream}}},
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
  std::set<std::string> ids_in(const std::string& stream) {
    const auto words = redis.ask({"XRANGE", stream, "-", "+"});
    std::set<std::string> ids;
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "message-id") ids.insert(words[i + 1]);
    return ids;
  }
  bool fails_with(const std::string& id, const std::string& reason) {
    return eventually([&] { return job(id)["errors"].dump().find(reason) != std::string::npos; });
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

TEST_F(Redis, WhatTheServerRefusesIsRetriedWithTheReason) {
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
  put_type("crash", exit_to("crash"));
  put_noop();
  auto ids = create_many("crash", 3000);
  ASSERT_TRUE(eventually([&] { return count("done") > 200; }));
  redis.kill();
  EXPECT_LT(count("done"), 3000) << "killed in the middle";
  EXPECT_TRUE(becomes(create("noop", 0), "done")) << "others go on";
  const std::string late = create("crash", 0);
  EXPECT_TRUE(fails_with(late, "redis://127.0.0.1"));
  ids.insert(late);
  redis.start();
  EXPECT_TRUE(eventually([&] { return count("done") == 3002; }));
  EXPECT_EQ(ids_in("crash"), ids);
}

}  // namespace
}  // namespace tocsin
