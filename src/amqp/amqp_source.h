// AmqpSource: consumes one queue of an AMQP 0-9-1 broker as an entry topic: its messages become jobs. Implements
// EntrySource, which has the contract of the calls (broker/entry_source.h). Owned by an EntryConsumer
// (entry/entry_consumer.h). After an Error the consumer makes a new source, and the broker delivers unsettled messages
// again.
#pragma once

#include "amqp/amqp_connection.h"
#include "broker/entry_source.h"

namespace tocsin {

// The id of a message is its message-id property. Without one it is a digest of its body, exchange, routing key and
// some properties (timestamp, correlation id, app id, type). The id becomes the job's idempotency key. A message whose
// id, type and biz_id match a job that is live or in history creates none; it is refused if it asks for another time,
// attribute or max_attempts. So messages without a message-id whose digests are equal become one job. Thread: owner
// only (the consumer's), except interrupt() (any).
class AmqpSource final : public EntrySource {
 public:
  // `prefetch`: the most unsettled messages that the broker sends, 1 to 10,000.
  AmqpSource(AmqpServer server, std::string queue, std::uint16_t prefetch)
      : server_(std::move(server)), queue_(std::move(queue)), prefetch_(prefetch) {}

  // REQUIRES: the queue exists. Every Error is unavailable.
  Status open() override;
  Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) override;
  // REQUIRES: one element per message of the last receive(). Consecutive accepted messages are acknowledged together.
  // Each refused message is rejected by itself: it goes to the queue's dead letter exchange, without the reason; if the
  // queue has none, the broker drops the message.
  Status settle(const std::vector<std::optional<std::string>>& refusals) override;
  void interrupt() override { connection_.interrupt(); }

 private:
  Error why_no_message();  // reads the frame that arrived in place of a message and says what it means

  const AmqpServer server_;
  const std::string queue_;
  const std::uint16_t prefetch_;
  AmqpConnection connection_;
  std::vector<std::uint64_t> tags_;  // delivery tags of the messages of the last receive(), until they are settled
};

}  // namespace tocsin
