// Consumes one AMQP queue as an entry topic. An acknowledgement may cover several messages.
#pragma once

#include "amqp/amqp_connection.h"
#include "broker/entry_source.h"

namespace tocsin {

// The id of a message is its message-id property, or else a digest of its body, exchange, routing key and some
// properties (timestamp, correlation id, app id, type): messages equal in all of these become one job. Thread: as
// EntrySource.
class AmqpSource final : public EntrySource {
 public:
  AmqpSource(AmqpServer server, std::string queue, std::uint16_t prefetch)
      : server_(std::move(server)), queue_(std::move(queue)), prefetch_(prefetch) {}

  Status open() override;
  Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) override;
  Status settle(const std::vector<std::optional<std::string>>& refusals) override;
  void interrupt() override { connection_.interrupt(); }

 private:
  Error unexpected();

  const AmqpServer server_;
  const std::string queue_;
  const std::uint16_t prefetch_;
  AmqpConnection connection_;
  std::vector<std::uint64_t> tags_;  // of the last receive()
};

}  // namespace tocsin
