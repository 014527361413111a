#include "kafka/kafka_source.h"

#include <algorithm>

#include "broker/peer.h"

namespace tocsin {
namespace {

constexpr std::size_t kMostBytes = 8 << 20;  // of one batch
constexpr int kDeadLetterMs = 10'000;
constexpr std::int64_t kYear10000Ms = 253'402'300'800'000;  // a producer may write any time

int ms(Duration length) { return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(length).count()); }

// A message without an id of its own is identified by its position and by the time when it was written: a topic that
// was deleted and created again begins at offset 0. All of this is stored with the message, so a redelivery has the
// same id.
std::string id_of(const rd_kafka_message_t& message) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_message_headers(&message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
      rd_kafka_header_get_last(headers, "message-id", &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR && value && size > 0)
    return {static_cast<const char*>(value), size};
  rd_kafka_timestamp_type_t kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t written_at = rd_kafka_message_timestamp(&message, &kind);
  return position_id(rd_kafka_topic_name(message.rkt), message.partition, message.offset,
                     kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? 0 : written_at);
}

EntryMessage entry_of(const rd_kafka_message_t& message) {
  EntryMessage entry;
  if (message.payload) entry.body.assign(static_cast<const char*>(message.payload), message.len);
  if (message.key) entry.key.assign(static_cast<const char*>(message.key), message.key_len);
  entry.id = id_of(message);
  rd_kafka_timestamp_type_t kind;
  if (const std::int64_t at = rd_kafka_message_timestamp(&message, &kind);
      at > 0 && at < kYear10000Ms && kind != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE)
    entry.sent_at = WallTime(std::chrono::milliseconds(at));
  return entry;
}

}  // namespace

std::string position_id(const std::string& topic, std::int32_t partition, std::int64_t offset,
                        std::int64_t written_at_ms) {
  std::string id = topic + "/" + std::to_string(partition) + "/" + std::to_string(offset);
  return written_at_ms > 0 ? id + "@" + std::to_string(written_at_ms) : id;
}

KafkaSource::~KafkaSource() {
  messages_.clear();
  if (client_) rd_kafka_consumer_close(client_.get());
}

Status KafkaSource::open() {
  auto conf = make_kafka_conf(subscription_.cluster);
  if (!conf) return conf.error();
  const KafkaProperties own = {
      {"client.id", "tocsin"},
      {"group.id", subscription_.group},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"auto.offset.reset", "earliest"},
      {"session.timeout.ms", "10000"},          // others take the partitions of a dead node after this time
      {"queued.min.messages", "1000"},          // read ahead,
      {"queued.max.messages.kbytes", "16384"},  // but no more than this
      {"fetch.wait.max.ms", "100"},
  };
  for (const auto& [name, value] : own) rd_kafka_conf_set(conf->get(), name.c_str(), value.c_str(), nullptr, 0);
  auto client = make_kafka_client(RD_KAFKA_CONSUMER, std::move(*conf));
  if (!client) return client.error();
  client_ = std::move(*client);
  rd_kafka_poll_set_consumer(client_.get());
  if (Status found = check_kafka_topic(client_.get(), subscription_.topic, kConnectTimeout); !found) return found;
  KafkaPtr<rd_kafka_topic_partition_list_t> topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), subscription_.topic.c_str(), RD_KAFKA_PARTITION_UA);
  const auto code = rd_kafka_subscribe(client_.get(), topics.get());
  return code == RD_KAFKA_RESP_ERR_NO_ERROR ? Status(Unit{}) : Status(kafka_error(code));
}

Result<std::vector<EntryMessage>> KafkaSource::receive(std::size_t most, Duration timeout) {
  std::vector<EntryMessage> entries;
  std::size_t bytes = 0;
  messages_.clear();
  while (messages_.size() < most && bytes < kMostBytes) {
    KafkaPtr<rd_kafka_message_t> message(rd_kafka_consumer_poll(client_.get(), messages_.empty() ? ms(timeout) : 0));
    if (!message) break;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      // The library reconnects by itself; other errors are answers such as "no such topic".
      return kafka_error(message->err, rd_kafka_message_errstr(message.get()));
    }
    entries.push_back(entry_of(*message));
    bytes += message->len;
    messages_.push_back(std::move(message));
  }
  return entries;
}

Status KafkaSource::settle(const std::vector<std::optional<std::string>>& refusals) {
  if (messages_.empty()) return Unit{};
  if (Status done = send_dead_letters(refusals); !done) return done;
  KafkaPtr<rd_kafka_topic_partition_list_t> offsets(rd_kafka_topic_partition_list_new(8));
  for (const auto& message : messages_) {
    const char* topic = rd_kafka_topic_name(message->rkt);
    auto* at = rd_kafka_topic_partition_list_find(offsets.get(), topic, message->partition);
    if (!at) {
      at = rd_kafka_topic_partition_list_add(offsets.get(), topic, message->partition);
      at->offset = 0;
    }
    at->offset = std::max(at->offset, message->offset + 1);
  }
  messages_.clear();
  const auto code = rd_kafka_commit(client_.get(), offsets.get(), /*async=*/0);
  return code == RD_KAFKA_RESP_ERR_NO_ERROR ? Status(Unit{}) : Status(kafka_error(code, "commit"));
}

Status KafkaSource::open_dead_letters() {
  auto conf = make_kafka_conf(subscription_.cluster);
  if (!conf) return conf.error();
  rd_kafka_conf_set(conf->get(), "enable.idempotence", "true", nullptr, 0);
  rd_kafka_conf_set(conf->get(), "message.timeout.ms", std::to_string(kDeadLetterMs).c_str(), nullptr, 0);
  rd_kafka_conf_set(conf->get(), "message.max.bytes", "1000000000", nullptr, 0);  // as large as any that came
  // A topic limits the size of a batch. One message each: a batch that is too large would be refused as a whole.
  rd_kafka_conf_set(conf->get(), "batch.num.messages", "1", nullptr, 0);
  rd_kafka_conf_set_opaque(conf->get(), &dead_letter_report_);
  rd_kafka_conf_set_dr_msg_cb(conf->get(), on_delivery);
  auto client = make_kafka_client(RD_KAFKA_PRODUCER, std::move(*conf));
  if (!client) return client.error();
  dead_letters_ = std::move(*client);
  return Unit{};
}

void KafkaSource::on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* report) {
  DeadLetterReport& all = *static_cast<DeadLetterReport*>(report);
  if (message->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
    all.too_large.push_back(*static_cast<const std::size_t*>(message->_private));
  else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
    all.failure = rd_kafka_err2str(message->err);
}

Status KafkaSource::send_dead_letters(const std::vector<std::optional<std::string>>& refusals) {
  std::vector<std::size_t> refused;
  for (std::size_t i = 0; i < refusals.size(); ++i)
    if (refusals[i]) refused.push_back(i);
  if (subscription_.dead_letter_topic.empty() || refused.empty()) return Unit{};
  if (!dead_letters_)
    if (Status done = open_dead_letters(); !done) return done;
  auto too_large = send_dead_letters(refused, refusals, /*has_values=*/true);
  // The topic takes less than the one that they came from. Their consumer must go on, and the refusal tells their size.
  if (too_large && !too_large->empty()) too_large = send_dead_letters(*too_large, refusals, /*has_values=*/false);
  return too_large ? Status(Unit{}) : Status(too_large.error());
}

Result<std::vector<std::size_t>> KafkaSource::send_dead_letters(const std::vector<std::size_t>& refused,
                                                                const std::vector<std::optional<std::string>>& refusals,
                                                                bool has_values) {
  const std::string& topic = subscription_.dead_letter_topic;
  dead_letter_report_ = {};
  for (const std::size_t& i : refused) {
    const rd_kafka_message_t& bad = *messages_[i];
    const std::string from = id_of(bad);
    const auto code = rd_kafka_producev(dead_letters_.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(bad.key, bad.key_len),
                                        RD_KAFKA_V_VALUE(has_values ? bad.payload : nullptr, has_values ? bad.len : 0),
                                        RD_KAFKA_V_HEADER("message-id", from.data(), from.size()),
                                        RD_KAFKA_V_HEADER("tocsin-refusal", refusals[i]->data(), refusals[i]->size()),
                                        RD_KAFKA_V_OPAQUE(const_cast<std::size_t*>(&i)), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
      dead_letter_report_.too_large.push_back(i);
    else if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
      return kafka_error(code, "dead letter topic " + topic);
  }
  const auto code = rd_kafka_flush(dead_letters_.get(), 2 * kDeadLetterMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(code, "dead letter topic " + topic);
  if (dead_letter_report_.failure.empty()) return std::move(dead_letter_report_.too_large);
  return Error{ErrorCode::unavailable, "dead letter topic " + topic + ": " + dead_letter_report_.failure, {}};
}

}  // namespace tocsin
