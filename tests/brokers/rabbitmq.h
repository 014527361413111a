// A RabbitMQ of the tests' own, and a client that looks into its queues.
#pragma once

#include <amqp.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/process.h"

namespace tocsin {

// Its node name, ports, data and Erlang cookie are its own; gone at the end.
// Thread: owner only, the main thread.
class RabbitMq {
 public:
  RabbitMq();
  ~RabbitMq();
  RabbitMq(const RabbitMq&) = delete;
  RabbitMq& operator=(const RabbitMq&) = delete;

  // Returns when it takes connections.
  void start();
  // As a loss of power would; queues and messages on disk are kept.
  void kill();

  int port() const { return port_; }
  std::string url() const { return "amqp://guest:guest@127.0.0.1:" + std::to_string(port_); }

 private:
  std::string folder_;
  int port_, distribution_port_, epmd_port_;
  std::unique_ptr<Process> process_;
};

struct QueuedMessage {
  std::string id, body, type, content_type, attempt;
  int delivery_mode = 0;
};

// Throws std::runtime_error when the broker refuses.
// Thread: owner only.
class AmqpProbe {
 public:
  explicit AmqpProbe(int port);
  ~AmqpProbe();
  AmqpProbe(const AmqpProbe&) = delete;
  AmqpProbe& operator=(const AmqpProbe&) = delete;

  // Durable.
  void declare(const std::string& queue, const std::map<std::string, std::string>& arguments = {});
  // To the default exchange; persistent.
  void publish(const std::string& queue, const std::string& body, const std::string& id = "");
  // Returns when the broker has confirmed all that was published, but for `most`: only that survives its death.
  void wait_for_confirms(std::size_t most = 0);
  // Takes one message; nullopt: the queue is empty.
  std::optional<QueuedMessage> take(const std::string& queue);
  std::vector<QueuedMessage> take_all(const std::string& queue);
  // Messages ready in a queue.
  int depth(const std::string& queue);

 private:
  void check(const char* what);
  amqp_connection_state_t state_;
  std::uint64_t last_tag_ = 0;
  std::set<std::uint64_t> unconfirmed_;
};

}  // namespace tocsin
