// Publishes to one Kafka topic with the idempotent producer: a verdict comes when all in-sync replicas have the
// message.
#pragma once

#include <set>
#include <string>

#include "base/mutex.h"
#include "broker/link.h"
#include "broker/peer.h"
#include "kafka/kafka_client.h"

namespace tocsin {

// Thread: as Link.
class KafkaLink final : public Link {
 public:
  // `guard`: null allows any address. `message_timeout`: after this the library fails a message; at least a second.
  KafkaLink(KafkaProperties cluster, std::string topic, GuardPtr guard, Duration message_timeout);
  ~KafkaLink() override;

  Status open(int wake, std::chrono::milliseconds timeout) override;
  Status send(std::uint64_t ticket, const BrokerMessage& message) override;
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override;
  std::string trouble() const override;
  void interrupt() override {}  // nothing waits for longer than open() may

 private:
  std::string with_trouble() const;  // after an error; empty when there is none
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self);
  static void on_error(rd_kafka_t*, int code, const char* why, void* self);
  // Thread: any, the library's own.
  static int connect(int socket, const sockaddr* address, int size, const char* id, void* self);

  const KafkaProperties cluster_;
  const std::string topic_;
  const GuardPtr guard_;  // null: any address
  const Duration message_timeout_;
  mutable Mutex mutex_;
  std::set<std::string> forbidden_
      TOCSIN_GUARDED_BY(mutex_);  // brokers that the cluster names and the guard does not allow
  int wake_ = -1;
  std::vector<Verdict>* verdicts_ = nullptr;  // during poll()
  std::vector<Verdict> refused_;              // by send(), for the next poll()
  std::string broken_;                        // why the producer cannot be used any more; empty: it can
  KafkaPtr<rd_kafka_t> client_;
};

}  // namespace tocsin
