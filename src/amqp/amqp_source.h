// AmqpSource: consumes one queue of an AMQP 0-9-1 broker as an entry topic: its messages become jobs. EntryConsumer, on
// a thread of its own, calls open() once, then receive() and settle() in turn. After an error it makes a new source,
// and the broker delivers unsettled messages again.
#pragma once

#include "amqp/amqp_connection.h"
#include "broker/entry_source.h"

namespace tocsin {

// The id of a message is its message-id property, or else a digest of its body, exchange, routing key and some
// properties (timestamp, correlation id, app id, type). A message whose id has a job already, such as one delivered
// again, creates none, so messages without a message-id that are equal in all of these become one job.
// Thread: owner only, except interrupt() (any).
class AmqpSource final : public EntrySource {
 public:
  // `prefetch`: how many unsettled messages the broker sends at most, 1 to 10,000.
  AmqpSource(AmqpServer server, std::string queue, std::uint16_t prefetch)
      : server_(std::move(server)), queue_(std::move(queue)), prefetch_(prefetch) {}

  Status open() override;
  Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) override;
  // An acknowledgement covers all messages up to a refused one. A refused message goes to the queue's dead letter
  // exchange, without the reason; without such an exchange the broker drops it.
  Status settle(const std::vector<std::optional<std::string>>& refusals) override;
  void interrupt() override { connection_.interrupt(); }

 private:
  Error why_no_message();  // the broker has sent something else: why

  const AmqpServer server_;
  const std::string queue_;
  const std::uint16_t prefetch_;
  AmqpConnection connection_;
  std::vector<std::uint64_t> tags_;  // delivery tags of the messages of the last receive(), until they are settled
};

}  // namespace tocsin
