#include "amqp/amqp_source.h"

#include <amqp_framing.h>

#include "broker/peer.h"
#include "core/digest.h"

namespace tocsin {
namespace {

// While the database is down this source does not read, for longer than any heartbeat interval. So a broker that died
// is detected by TCP keep-alive instead.
constexpr int kNoHeartbeat = 0;
constexpr std::size_t kMostBytes = 8 << 20;  // of one batch

bool has(const amqp_basic_properties_t& properties, amqp_flags_t flag) { return (properties._flags & flag) != 0; }

std::string id_of(const amqp_envelope_t& envelope, std::string_view body) {
  const amqp_basic_properties_t& properties = envelope.message.properties;
  if (has(properties, AMQP_BASIC_MESSAGE_ID_FLAG) && properties.message_id.len > 0)
    return std::string(text_of(properties.message_id));
  std::string all(body);
  all += '\0' + std::to_string(has(properties, AMQP_BASIC_TIMESTAMP_FLAG) ? properties.timestamp : 0);
  for (const auto& [flag, value] : {std::pair{AMQP_BASIC_CORRELATION_ID_FLAG, properties.correlation_id},
                                    {AMQP_BASIC_APP_ID_FLAG, properties.app_id},
                                    {AMQP_BASIC_TYPE_FLAG, properties.type}}) {
    all += '\0';
    if (has(properties, static_cast<amqp_flags_t>(flag))) all += text_of(value);
  }
  all += '\0' + std::string(text_of(envelope.exchange)) + '\0' + std::string(text_of(envelope.routing_key));
  return sha256_hex(all);
}

}  // namespace

Status AmqpSource::open() {
  if (Status done = connection_.open(server_, kNoHeartbeat, kConnectTimeout); !done) return done;
  amqp_basic_qos(connection_, kAmqpChannel, 0, prefetch_, 0);
  if (Status done = connection_.last_reply(); !done) return done;
  amqp_basic_consume(connection_, kAmqpChannel, amqp_bytes(queue_), amqp_empty_bytes, /*no_local=*/0, /*no_ack=*/0,
                     /*exclusive=*/0, amqp_empty_table);
  return connection_.last_reply();
}

Result<std::vector<EntryMessage>> AmqpSource::receive(std::size_t most, Duration timeout) {
  std::vector<EntryMessage> messages;
  std::size_t bytes = 0;
  tags_.clear();
  while (messages.size() < most && bytes < kMostBytes) {
    amqp_envelope_t envelope;
    timeval wait{0, messages.empty() ? timeout.count() % 1'000'000 : 0};
    if (messages.empty()) wait.tv_sec = timeout.count() / 1'000'000;
    const amqp_rpc_reply_t reply = amqp_consume_message(connection_, &envelope, &wait, 0);
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_TIMEOUT) break;
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
      return reply.library_error == AMQP_STATUS_UNEXPECTED_STATE ? why_no_message()
                                                                 : AmqpConnection::failure(reply.library_error);
    EntryMessage& message = messages.emplace_back();
    message.body = text_of(envelope.message.body);
    message.id = id_of(envelope, message.body);
    bytes += message.body.size();
    tags_.push_back(envelope.delivery_tag);
    amqp_destroy_envelope(&envelope);
  }
  amqp_maybe_release_buffers(connection_);
  return messages;
}

// A frame that is no message has arrived: the broker closes the channel, or the queue was deleted.
Error AmqpSource::why_no_message() {
  amqp_frame_t frame;
  timeval now{};
  const int status = amqp_simple_wait_frame_noblock(connection_, &frame, &now);
  if (status != AMQP_STATUS_OK) return AmqpConnection::failure(status);
  if (frame.frame_type == AMQP_FRAME_METHOD && frame.payload.method.id == AMQP_BASIC_CANCEL_METHOD)
    return {ErrorCode::unavailable, "the queue is gone", {}};
  const std::string why = AmqpConnection::closed_by(frame);
  return {ErrorCode::unavailable, why.empty() ? "the broker sent something unexpected" : why, {}};
}

Status AmqpSource::settle(const std::vector<std::optional<std::string>>& refusals) {
  int done = AMQP_STATUS_OK;
  for (std::size_t i = 0; i < tags_.size() && done == AMQP_STATUS_OK; ++i) {
    if (refusals[i]) {
      done = amqp_basic_reject(connection_, kAmqpChannel, tags_[i], /*requeue=*/0);
    } else if (i + 1 == tags_.size() || refusals[i + 1]) {
      done = amqp_basic_ack(connection_, kAmqpChannel, tags_[i], /*multiple=*/1);  // all before it are settled, too
    }
  }
  tags_.clear();
  return done == AMQP_STATUS_OK ? Status(Unit{}) : Status(AmqpConnection::failure(done));
}

}  // namespace tocsin
