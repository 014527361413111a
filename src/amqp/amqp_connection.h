// A connection to an AMQP broker with one channel.
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
  std::string user = "guest", password = "guest";  // what AMQP brokers know from the start
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
  // often. A peer that acknowledges no data for kSilence is given up.
  Status open(const AmqpServer& server, int heartbeat_s, std::chrono::milliseconds timeout);

  // The result of the last call that waits for an answer.
  Status last_reply();
  // What a close frame says, or "".
  static std::string closed_by(const amqp_frame_t& frame);
  static Error failure(int library_status);

  void interrupt();
  int fd() const { return amqp_get_sockfd(state_); }
  operator amqp_connection_state_t() const { return state_; }

 private:
  const amqp_connection_state_t state_;
  Dialer dialer_;
  std::atomic<int> shut_fd_{-1};
};

}  // namespace tocsin
