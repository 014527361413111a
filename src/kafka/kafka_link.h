// Publishes to one topic with the idempotent producer.
#pragma once

#include <string>

#include "broker/link.h"
#include "kafka/kafka_client.h"

namespace tocsin {

// Thread: as Link.
class KafkaLink final : public Link {
 public:
  // `message_timeout`: after this the library gives a message up.
  KafkaLink(KafkaProperties cluster, std::string topic, Duration message_timeout);
  ~KafkaLink() override;

  Status open(int wake) override;
  Status send(std::uint64_t ticket, const BrokerMessage& message) override;
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override;
  void interrupt() override {}  // nothing waits for longer than kConnectTimeout

 private:
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self);
  static void on_error(rd_kafka_t*, int code, const char* why, void* self);

  const KafkaProperties cluster_;
  const std::string topic_;
  const Duration message_timeout_;
  int wake_ = -1;
  std::vector<Verdict>* verdicts_ = nullptr;  // during poll()
  std::vector<Verdict> refused_;              // by send(), told by the next poll()
  std::string broken_;                        // why the producer is of no use any more
  KafkaPtr<rd_kafka_t> client_;
};

}  // namespace tocsin
