// A connection to an AMQP broker with one channel. Used by AmqpLink (publishing) and AmqpSource (consuming).
#pragma once

#include <amqp.h>

#include <atomic>
#include <string>
#include <string_view>

#include "broker/peer.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

struct AmqpServer {
  BrokerPeer peer;
  std::string user = "guest", password = "guest";  // the default account of AMQP brokers
  std::string vhost = "/";
};

inline constexpr amqp_channel_t kAmqpChannel = 1;

inline amqp_bytes_t amqp_bytes(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // the library does not write to it
}
inline std::string_view text_of(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

// Thread: owner only, except interrupt() (any).
class AmqpConnection {
 public:
  AmqpConnection();
  ~AmqpConnection();  // does not wait for the peer
  AmqpConnection(const AmqpConnection&) = delete;
  AmqpConnection& operator=(const AmqpConnection&) = delete;

  // Connects, logs in and opens the channel. `heartbeat_s`: 0 is none; otherwise the owner must read at least that
  // often. `timeout`: for the connection and for every answer. The connection fails when the peer acknowledges no data
  // for 15 s (give_up_when_silent).
  Status open(const AmqpServer& server, int heartbeat_s, std::chrono::milliseconds timeout);

  // The result of the last call of the library that waited for an answer.
  Status last_reply();
  // The broker's reason if the frame closes the channel or the connection; else "".
  static std::string closed_by(const amqp_frame_t& frame);
  static Error failure(int library_status);  // Error unavailable with the library's text

  void interrupt();  // makes a call that waits fail soon
  int fd() const { return amqp_get_sockfd(state_); }
  operator amqp_connection_state_t() const { return state_; }

 private:
  const amqp_connection_state_t state_;
  Dialer dialer_;
  std::atomic<int> shut_fd_{-1};
};

}  // namespace tocsin
