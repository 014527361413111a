// AmqpLink: the Link of an exit of kind amqp. It publishes to one exchange with publisher confirms: the broker's ack or
// nack of a message is its verdict. Messages are sent as mandatory: the broker returns one that no queue gets, and acks
// it then; its verdict is a refusal.
#pragma once

#include <deque>

#include "amqp/amqp_connection.h"
#include "broker/link.h"

namespace tocsin {

// Where every message of a link goes.
struct AmqpRoute {
  std::string exchange;  // "": the default one, which routes to the queue that the key names
  std::string routing_key;
};

// Thread: owner only (the publisher's), except interrupt() (any, while the link lives).
class AmqpLink final : public Link {
 public:
  AmqpLink(AmqpServer server, AmqpRoute route) : server_(std::move(server)), route_(std::move(route)) {}

  Status open(int wake, std::chrono::milliseconds timeout) override;
  std::string hold() const override { return hold_; }
  // Waits while the socket takes no data; a peer that acknowledges none for 15 s, or interrupt(), ends that.
  Status send(std::uint64_t ticket, const BrokerMessage& message) override;
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override;
  void interrupt() override { connection_.interrupt(); }

 private:
  struct Sent {
    std::uint64_t ticket = 0;
    std::string id;           // BrokerMessage::id: names the message when the broker returns it
    std::string refusal;      // why the broker returned it; empty: it did not
    bool is_settled = false;  // confirmed out of order
  };

  void cork(bool is_on);              // TCP_CORK: while it is on, messages gather in the kernel and leave together
  void wait(Duration timeout) const;  // for data from the broker or wake_; 5 s at most, half a heartbeat interval
  Status read(const amqp_frame_t& frame, std::vector<Verdict>& verdicts);
  void returned(const amqp_frame_t& frame);  // the header of a returned message: stores why; its ack makes the verdict
  // An ack (`refusal` is empty) or nack of the message `tag`; if `is_multiple`, of all up to it.
  void settle(std::uint64_t tag, bool is_multiple, const std::string& refusal, std::vector<Verdict>& verdicts);

  const AmqpServer server_;
  const AmqpRoute route_;
  AmqpConnection connection_;
  int wake_ = -1;
  bool is_corked_ = false;
  std::deque<Sent> sent_;        // not settled, or behind such a one; in the order of their delivery tags
  std::uint64_t first_tag_ = 1;  // of sent_.front()
  std::string return_reason_;    // of the last basic.return; the header of its message is the next frame
  std::string hold_;             // why the broker blocks publishers (connection.blocked); empty: it does not
};

}  // namespace tocsin
