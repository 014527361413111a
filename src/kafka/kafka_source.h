// Consumes one Kafka topic as an entry topic, as a member of a consumer group.
#pragma once

#include <string>

#include "broker/entry_source.h"
#include "kafka/kafka_client.h"

namespace tocsin {

struct KafkaSubscription {
  KafkaProperties cluster;
  std::string topic, group;
  std::string dead_letter_topic;  // or empty
};

// The id of a message without a message-id header: "topic/partition/offset@timestamp", in milliseconds since 1970;
// without "@timestamp" if that is 0 (not known). The timestamp tells apart messages of a topic that was deleted and
// created again, whose offsets start at 0 again.
std::string place_id(const std::string& topic, std::int32_t partition, std::int64_t offset, std::int64_t written_at_ms);

// The id of a message is its header message-id, or else its place_id(). Offsets are committed by settle() only,
// and a new group begins with the oldest message.
// Thread: as EntrySource.
class KafkaSource final : public EntrySource {
 public:
  explicit KafkaSource(KafkaSubscription subscription) : subscription_(std::move(subscription)) {}
  ~KafkaSource() override;

  Status open() override;
  Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) override;
  Status settle(const std::vector<std::optional<std::string>>& refusals) override;

 private:
  Status open_dead_letters();
  Status send_dead_letters(const std::vector<std::optional<std::string>>& refusals);
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* failures);

  const KafkaSubscription subscription_;
  std::vector<KafkaPtr<rd_kafka_message_t>> messages_;  // of the last receive(); before the client, which they need
  std::string dead_letter_failure_;
  KafkaPtr<rd_kafka_t> dead_letters_;  // the producer, made at the first dead letter
  KafkaPtr<rd_kafka_t> client_;
};

}  // namespace tocsin
