// KafkaLink: publishes messages to one Kafka topic. Implements Link, which has the contract of the calls
// (broker/link.h). It uses the idempotent producer: a message is confirmed when all in-sync replicas have it.
#pragma once

#include <set>
#include <string>

#include "base/mutex.h"
#include "broker/link.h"
#include "broker/peer.h"
#include "kafka/kafka_client.h"

namespace tocsin {

// Thread: owner only (the publisher's), except interrupt() (any).
class KafkaLink final : public Link {
 public:
  // `guard`: null allows all addresses. `message_timeout`: the library gives up a message after this time, or after 1 s
  // if that is longer.
  KafkaLink(KafkaProperties cluster, std::string topic, GuardPtr guard, Duration message_timeout);
  ~KafkaLink() override;  // messages that were not sent yet are dropped

  Status open(int wake, std::chrono::milliseconds timeout) override;
  // Never fails: the next poll() refuses messages that the library did not take.
  Status send(std::uint64_t ticket, const BrokerMessage& message) override;
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override;
  std::string trouble() const override;
  void interrupt() override {}  // every wait has a time-out, and `wake` ends poll()

 private:
  std::string with_trouble() const;  // ": " and trouble(), or empty: the end of an error text
  // Callbacks of the library. It calls the first two in poll(), on the owner's thread.
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self);
  static void on_error(rd_kafka_t*, int code, const char* why, void* self);
  // Called in place of ::connect(), on the library's own threads. EACCES: the guard forbids the address.
  static int connect(int socket, const sockaddr* address, int size, const char* id, void* self);

  const KafkaProperties cluster_;
  const std::string topic_;
  const GuardPtr guard_;  // null: any address
  const Duration message_timeout_;
  mutable Mutex mutex_;
  std::set<std::string> forbidden_ TOCSIN_GUARDED_BY(mutex_);  // brokers that the guard does not allow; at most 8
  int wake_ = -1;
  std::vector<Verdict>* verdicts_ = nullptr;  // where on_delivery() appends; null outside poll()
  std::vector<Verdict> refused_;              // by send(), for the next poll()
  std::string broken_;                        // why the producer cannot be used any more; empty: it can
  KafkaPtr<rd_kafka_t> client_;
};

}  // namespace tocsin
