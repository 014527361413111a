// AmqpLink: a connection that publishes messages to one exchange of an AMQP broker with publisher confirms. Implements
// Link, which has the contract of the calls (broker/link.h). The broker's ack confirms a message, its nack refuses it.
// Messages are mandatory: one that no queue gets is returned, then acked, and counts as refused.
#pragma once

#include <deque>

#include "amqp/amqp_connection.h"
#include "broker/link.h"

namespace tocsin {

struct AmqpRoute {
  std::string exchange;  // "": the default exchange, which routes to the queue named as the key
  std::string routing_key;
};

// Thread: owner only (the publisher's), except interrupt() (any).
class AmqpLink final : public Link {
 public:
  AmqpLink(AmqpServer server, AmqpRoute route) : server_(std::move(server)), route_(std::move(route)) {}

  Status open(int wake, std::chrono::milliseconds timeout) override;
  std::string blocked_because() const override { return blocked_because_; }
  // Waits while the socket takes no data. The wait ends if the peer acknowledges no data for 15 s, or by interrupt().
  Status send(std::uint64_t ticket, const BrokerMessage& message) override;
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override;
  void interrupt() override { connection_.interrupt(); }

 private:
  struct Sent {
    std::uint64_t ticket = 0;
    std::string id;           // by which a returned message is found
    std::string refusal;      // why the broker returned it; empty: it did not
    bool is_settled = false;  // confirmed out of order
  };

  void cork(bool is_on);              // TCP_CORK: while it is on, messages gather in the kernel and leave together
  void wait(Duration timeout) const;  // for the broker or wake_; at most 5 s, because heartbeats must be sent
  Status read(const amqp_frame_t& frame, std::vector<Verdict>& verdicts);
  void returned(const amqp_frame_t& frame);  // stores the refusal; the verdict comes with the ack that follows
  // The verdict on the message with delivery tag `tag` or, if `is_multiple`, on all up to it. `refusal`: empty after an
  // ack.
  void settle(std::uint64_t tag, bool is_multiple, const std::string& refusal, std::vector<Verdict>& verdicts);

  const AmqpServer server_;
  const AmqpRoute route_;
  AmqpConnection connection_;
  int wake_ = -1;
  bool is_corked_ = false;
  std::deque<Sent> sent_;        // in the order of their delivery tags
  std::uint64_t first_tag_ = 1;  // of sent_.front()
  std::string return_reason_;    // of the last basic.return; the next frame names the message
  std::string blocked_because_;  // from connection.blocked; empty: the broker takes messages
};

}  // namespace tocsin
