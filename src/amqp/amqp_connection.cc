#include "amqp/amqp_connection.h"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <sys/socket.h>

#include "base/utf8.h"
#include "broker/link.h"

namespace tocsin {
namespace {

constexpr int kMostFrameBytes = 131072;

std::string words(unsigned code, const amqp_bytes_t& text) {
  return std::to_string(code) + " " + storable(text_of(text), 300);
}

std::string closed_by(amqp_method_number_t id, const void* decoded) {
  if (id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(decoded);
    return words(close->reply_code, close->reply_text);
  }
  if (id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(decoded);
    return words(close->reply_code, close->reply_text);
  }
  return {};
}

Status status_of(const amqp_rpc_reply_t& reply) {
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return Unit{};
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      return AmqpConnection::failure(reply.library_error);
    case AMQP_RESPONSE_SERVER_EXCEPTION:
      return Error{ErrorCode::unavailable, closed_by(reply.reply.id, reply.reply.decoded), {}};
    case AMQP_RESPONSE_NONE:
      break;
  }
  return Error{ErrorCode::unavailable, "no answer", {}};
}

}  // namespace

AmqpConnection::AmqpConnection() : state_(amqp_new_connection()) {
  if (!state_) throw std::bad_alloc();
}

AmqpConnection::~AmqpConnection() {
  shut_fd_ = -1;
  amqp_destroy_connection(state_);
}

Status AmqpConnection::open(const AmqpServer& server, int heartbeat_s, std::chrono::milliseconds timeout) {
  const timeval each = timeval_of(timeout);
  amqp_set_handshake_timeout(state_, &each);
  amqp_set_rpc_timeout(state_, &each);
  amqp_socket_t* socket = amqp_tcp_socket_new(state_);
  if (!socket) throw std::bad_alloc();
  const auto connect = [&](const std::string& address, std::chrono::milliseconds part) -> Status {
    const timeval wait = timeval_of(part);
    const int done = amqp_socket_open_noblock(socket, address.c_str(), server.peer.port, &wait);
    return done == AMQP_STATUS_OK ? Status(Unit{}) : Status(failure(done));
  };
  if (Status done = dialer_.dial(server.peer, timeout, connect); !done) return done;
  give_up_when_silent(fd());
  shut_fd_ = fd();
  if (Status done = dialer_.interruption(); !done) return done;  // interrupt() came before shut_fd_ was set

  // The broker tells publishers that it is short of memory or disk, instead of just not reading from them.
  amqp_table_entry_t capability{amqp_bytes("connection.blocked"), {}};
  capability.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  capability.value.value.boolean = 1;
  amqp_table_entry_t properties[2]{};
  properties[0].key = amqp_bytes("capabilities");
  properties[0].value.kind = AMQP_FIELD_KIND_TABLE;
  properties[0].value.value.table = {1, &capability};
  properties[1].key = amqp_bytes("connection_name");
  properties[1].value.kind = AMQP_FIELD_KIND_UTF8;
  properties[1].value.value.bytes = amqp_bytes("tocsin");
  const amqp_table_t table{2, properties};
  const Status login =
      status_of(amqp_login_with_properties(state_, server.vhost.c_str(), 0, kMostFrameBytes, heartbeat_s, &table,
                                           AMQP_SASL_METHOD_PLAIN, server.user.c_str(), server.password.c_str()));
  if (!login) return Error{login.error().code, "login: " + login.error().message, {}};
  amqp_channel_open(state_, kAmqpChannel);
  return last_reply();
}

Status AmqpConnection::last_reply() { return status_of(amqp_get_rpc_reply(state_)); }

std::string AmqpConnection::closed_by(const amqp_frame_t& frame) {
  return frame.frame_type == AMQP_FRAME_METHOD
             ? tocsin::closed_by(frame.payload.method.id, frame.payload.method.decoded)
             : "";
}

Error AmqpConnection::failure(int library_status) {
  return {ErrorCode::unavailable, amqp_error_string2(library_status), {}};
}

void AmqpConnection::interrupt() {
  dialer_.interrupt();
  if (const int fd = shut_fd_; fd >= 0) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace tocsin
