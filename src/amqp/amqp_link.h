// Publishes to one AMQP exchange with publisher confirms: the verdict comes with the broker's ack or nack. A
// message without a queue is returned first and acked then: it is refused.
#pragma once

#include <deque>

#include "amqp/amqp_connection.h"
#include "broker/link.h"

namespace tocsin {

struct AmqpRoute {
  std::string exchange;  // "": the default one, which routes to the queue that the key names
  std::string routing_key;
};

// Thread: as Link.
class AmqpLink final : public Link {
 public:
  AmqpLink(AmqpServer server, AmqpRoute route) : server_(std::move(server)), route_(std::move(route)) {}

  Status open(int wake, std::chrono::milliseconds timeout) override;
  std::string hold() const override { return hold_; }
  Status send(std::uint64_t ticket, const BrokerMessage& message) override;
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override;
  void interrupt() override { connection_.interrupt(); }

 private:
  struct Sent {
    std::uint64_t ticket = 0;
    std::string id;
    std::string refusal;      // why it was returned; RabbitMQ acks an unroutable message after its return
    bool is_settled = false;  // confirmed out of order
  };

  void cork(bool is_on);  // while it is on, messages gather in the kernel and leave together
  void wait(Duration timeout) const;
  Status read(const amqp_frame_t& frame, std::vector<Verdict>& verdicts);
  void returned(const amqp_frame_t& frame);  // notes the refusal; the verdict comes with the ack that follows
  void settle(std::uint64_t tag, bool is_multiple, const std::string& refusal, std::vector<Verdict>& verdicts);

  const AmqpServer server_;
  const AmqpRoute route_;
  AmqpConnection connection_;
  int wake_ = -1;
  bool is_corked_ = false;
  std::deque<Sent> sent_;        // in the order of their delivery tags
  std::uint64_t first_tag_ = 1;  // of sent_.front()
  std::string return_reason_;    // a basic.return was read, the header of its message comes next
  std::string hold_;
};

}  // namespace tocsin
