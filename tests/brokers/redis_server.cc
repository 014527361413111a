#include "brokers/redis_server.h"

#include <hiredis/hiredis.h>
#include <signal.h>

#include <filesystem>
#include <stdexcept>

#include "support/server.h"

namespace tocsin {
namespace {

void collect(const redisReply& reply, std::vector<std::string>& out) {
  if (reply.str) out.emplace_back(reply.str, reply.len);
  if (reply.type == REDIS_REPLY_INTEGER) out.push_back(std::to_string(reply.integer));
  for (std::size_t i = 0; i < reply.elements; ++i) collect(*reply.element[i], out);
}

}  // namespace

RedisServerProcess::RedisServerProcess()
    : port_(free_port()), folder_(required_env("TOCSIN_TEST_DIR") + "/redis-" + std::to_string(port_)) {
  std::filesystem::create_directories(folder_);
  start();
}

RedisServerProcess::~RedisServerProcess() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void RedisServerProcess::start() {
  process_ = std::make_unique<Process>(
      std::vector<std::string>{"/usr/bin/redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1", "--dir",
                               folder_, "--appendonly", "yes", "--appendfsync", "always", "--requirepass", "sesame"});
  if (!eventually([&] { return !ask({"PING"}).empty(); })) throw std::runtime_error("redis: " + process_->out());
}

void RedisServerProcess::kill() {
  process_->signal(SIGKILL);
  process_->wait();
}

std::vector<std::string> RedisServerProcess::ask(const std::vector<std::string>& words) const {
  std::vector<std::string> out;
  const std::unique_ptr<redisContext, void (*)(redisContext*)> redis(redisConnect("127.0.0.1", port_), redisFree);
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

}  // namespace tocsin
