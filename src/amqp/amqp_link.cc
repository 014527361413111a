#include "amqp/amqp_link.h"

#include <amqp_framing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace tocsin {
namespace {

constexpr int kHeartbeatS = 10;
constexpr Duration kLongestWait = std::chrono::seconds(kHeartbeatS / 2);  // heartbeats are sent while reading
constexpr std::uint8_t kPersistent = 2;

amqp_table_entry_t header(std::string_view name, std::string_view value) {
  amqp_table_entry_t entry{amqp_bytes(name), {}};
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = amqp_bytes(value);
  return entry;
}

}  // namespace

Status AmqpLink::open(int wake, std::chrono::milliseconds timeout) {
  wake_ = wake;
  if (Status done = connection_.open(server_, kHeartbeatS, timeout); !done) return done;
  amqp_confirm_select(connection_, kAmqpChannel);
  return connection_.last_reply();
}

Status AmqpLink::send(std::uint64_t ticket, const BrokerMessage& message) {
  amqp_table_entry_t headers[2] = {header("tocsin-attempt", message.attempt), {}};
  int count = 1;
  if (message.traceparent) headers[count++] = header("traceparent", *message.traceparent);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG |
                      AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_APP_ID_FLAG |
                      AMQP_BASIC_HEADERS_FLAG;
  properties.content_type = amqp_bytes("application/json");
  properties.delivery_mode = kPersistent;
  properties.message_id = amqp_bytes(message.id);
  properties.timestamp = static_cast<std::uint64_t>(message.timestamp_ms / 1000);
  properties.type = amqp_bytes(message.type);
  properties.app_id = amqp_bytes("tocsin");
  properties.headers = {count, headers};
  sent_.push_back({ticket, message.id, {}, false});
  cork(true);
  const int done =
      amqp_basic_publish(connection_, kAmqpChannel, amqp_bytes(route_.exchange), amqp_bytes(route_.routing_key),
                         /*mandatory=*/1, /*immediate=*/0, &properties, amqp_bytes(message.body));
  if (done == AMQP_STATUS_OK) return Unit{};
  return AmqpConnection::failure(done);
}

// Messages that are sent in a row leave together: the library writes each in several pieces, and sends it off at once.
void AmqpLink::cork(bool is_on) {
  if (std::exchange(is_corked_, is_on) == is_on) return;
  const int value = is_on ? 1 : 0;
  ::setsockopt(connection_.fd(), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

void AmqpLink::wait(Duration timeout) const {
  if (amqp_frames_enqueued(connection_) || amqp_data_in_buffer(connection_)) return;
  pollfd fds[2] = {{connection_.fd(), POLLIN, 0}, {wake_, POLLIN, 0}};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min(timeout, kLongestWait)).count();
  ::poll(fds, 2, static_cast<int>(ms));
  eventfd_t ignored = 0;
  ::eventfd_read(wake_, &ignored);
}

Status AmqpLink::poll(Duration timeout, std::vector<Verdict>& verdicts) {
  cork(false);
  wait(timeout);
  while (true) {
    amqp_frame_t frame;
    timeval now{};
    const int status = amqp_simple_wait_frame_noblock(connection_, &frame, &now);
    if (status == AMQP_STATUS_TIMEOUT) break;
    if (status != AMQP_STATUS_OK) return AmqpConnection::failure(status);
    if (Status done = read(frame, verdicts); !done) return done;
  }
  amqp_maybe_release_buffers(connection_);
  return Unit{};
}

Status AmqpLink::read(const amqp_frame_t& frame, std::vector<Verdict>& verdicts) {
  if (frame.frame_type == AMQP_FRAME_HEADER) {
    returned(frame);
    return Unit{};
  }
  if (frame.frame_type != AMQP_FRAME_METHOD) return Unit{};
  const void* decoded = frame.payload.method.decoded;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(decoded);
      settle(ack->delivery_tag, ack->multiple != 0, {}, verdicts);
      return Unit{};
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(decoded);
      settle(nack->delivery_tag, nack->multiple != 0, "the broker refused it (nack)", verdicts);
      return Unit{};
    }
    case AMQP_BASIC_RETURN_METHOD: {
      const auto* back = static_cast<const amqp_basic_return_t*>(decoded);
      return_reason_ = "returned: " + std::to_string(back->reply_code) + " " +
                       storable(text_of(back->reply_text), 200) + " (exchange '" + route_.exchange +
                       "', routing key '" + route_.routing_key + "')";
      return Unit{};
    }
    case AMQP_CONNECTION_BLOCKED_METHOD: {
      const auto* blocked = static_cast<const amqp_connection_blocked_t*>(decoded);
      blocked_because_ = "the broker blocks publishers: " + storable(text_of(blocked->reason), 200);
      return Unit{};
    }
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      blocked_because_.clear();
      return Unit{};
    default:
      break;
  }
  const std::string why = AmqpConnection::closed_by(frame);
  return why.empty() ? Status(Unit{}) : Status(Error{ErrorCode::unavailable, why, {}});
}

// The header of a returned message; the body that follows is ignored.
void AmqpLink::returned(const amqp_frame_t& frame) {
  const auto* properties = static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
  const std::string_view id = text_of(properties->message_id);
  const auto same = std::find_if(sent_.rbegin(), sent_.rend(), [&](const Sent& sent) { return sent.id == id; });
  if (same != sent_.rend()) same->refusal = return_reason_;
}

void AmqpLink::settle(std::uint64_t tag, bool is_multiple, const std::string& refusal, std::vector<Verdict>& verdicts) {
  if (tag < first_tag_ || tag >= first_tag_ + sent_.size()) return;
  const std::size_t last = tag - first_tag_;
  for (std::size_t i = is_multiple ? 0 : last; i <= last; ++i) {
    Sent& sent = sent_[i];
    if (sent.is_settled) continue;
    sent.is_settled = true;
    verdicts.push_back({sent.ticket, sent.refusal.empty() ? refusal : sent.refusal});
  }
  while (!sent_.empty() && sent_.front().is_settled) {
    sent_.pop_front();
    ++first_tag_;
  }
}

}  // namespace tocsin
