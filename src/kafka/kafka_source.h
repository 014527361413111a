// KafkaSource: the EntrySource of Kafka. It receives the messages of one topic, which become jobs, as a member of a
// consumer group. EntrySource has the contract of the calls (broker/entry_source.h). Owned by the EntryConsumer of the
// topic (entry/entry_consumer.h), which calls it on its own thread.
#pragma once

#include <string>

#include "broker/entry_source.h"
#include "kafka/kafka_client.h"

namespace tocsin {

struct KafkaSubscription {
  KafkaProperties cluster;  // how to reach it and log in
  std::string topic, group;
  std::string dead_letter_topic;  // gets the messages that can never become jobs; empty: they are skipped
};

// The id of a message without a message-id header: "topic/partition/offset@written_at_ms". `written_at_ms`: the
// message's timestamp, in milliseconds since 1970; 0: it is not known, and the id ends after the offset. A topic that
// is deleted and created again starts at offset 0; the timestamp tells its messages from the former ones.
std::string position_id(const std::string& topic, std::int32_t partition, std::int64_t offset,
                        std::int64_t written_at_ms);

// The id of a message is its header message-id, otherwise position_id(). By the id a repeated delivery finds the job
// that exists. settle() sends refused messages to the dead letter topic, waits up to 20 s for that, and then commits
// the offsets. A message that is too large for that topic is sent without its value; if that is too large, it is
// skipped. If either fails, settle() returns an Error, and the messages are delivered again. A new group begins with
// the oldest message. Thread: owner only (the consumer's).
class KafkaSource final : public EntrySource {
 public:
  explicit KafkaSource(KafkaSubscription subscription) : subscription_(std::move(subscription)) {}
  ~KafkaSource() override;

  Status open() override;
  Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) override;
  Status settle(const std::vector<std::optional<std::string>>& refusals) override;

 private:
  Status open_dead_letters();
  struct DeadLetterReport {
    std::string failure;                 // why one was not written; empty: all others were
    std::vector<std::size_t> too_large;  // for the topic
  };
  Status send_dead_letters(const std::vector<std::optional<std::string>>& refusals);
  // Sends the messages with these indices. Returns those that are too large for the topic.
  Result<std::vector<std::size_t>> send_dead_letters(const std::vector<std::size_t>& refused,
                                                     const std::vector<std::optional<std::string>>& refusals,
                                                     bool has_values);
  // Called by the library for each dead letter, whose opaque is its index. `report`: &dead_letter_report_.
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* report);

  const KafkaSubscription subscription_;
  // Messages of the last receive() that are not settled. The destructor frees them before client_, which they refer to.
  std::vector<KafkaPtr<rd_kafka_message_t>> messages_;
  DeadLetterReport dead_letter_report_;  // of the last settle()
  KafkaPtr<rd_kafka_t> dead_letters_;    // the producer, made at the first dead letter
  KafkaPtr<rd_kafka_t> client_;          // the consumer, made by open()
};

}  // namespace tocsin
