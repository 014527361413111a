// AmqpConnection: a connection to an AMQP broker with one channel, made with the library rabbitmq-c. AmqpLink publishes
// and AmqpSource consumes on it: they call the library with the connection's state, and get its errors as Status.
#pragma once

#include <amqp.h>

#include <atomic>
#include <string>
#include <string_view>

#include "broker/peer.h"
#include "tocsin/error.h"

namespace tocsin {

struct AmqpServer {
  BrokerPeer peer;
  std::string user = "guest", password = "guest";  // the default account of AMQP brokers
  std::string vhost = "/";
};

inline constexpr amqp_channel_t kAmqpChannel = 1;  // number of the channel that open() opens

// Both convert without copying: the result points into the argument's bytes.
inline amqp_bytes_t amqp_bytes(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // the library does not write to it
}
inline std::string_view text_of(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

// Every Error is `unavailable`. Thread: owner only (the publisher's or the entry consumer's),
// except interrupt() (any, while the object lives).
class AmqpConnection {
 public:
  AmqpConnection();
  ~AmqpConnection();  // closes the socket without AMQP's closing handshake, so it waits for nothing
  AmqpConnection(const AmqpConnection&) = delete;
  AmqpConnection& operator=(const AmqpConnection&) = delete;

  // Connects, logs in and opens the channel. `heartbeat_s`: interval of AMQP heartbeats in seconds; 0: none. With
  // heartbeats the owner must call the library at least that often, because it sends them only while it reads; else the
  // broker may close the connection. `timeout`: the limit of each step (resolving the name, connecting, the login) and,
  // later, of each wait for an answer. A connection whose peer acknowledges no data for 15 s fails. REQUIRES: called
  // once, before all else but interrupt().
  Status open(const AmqpServer& server, int heartbeat_s, std::chrono::milliseconds timeout);

  // The result of the last library call that waits for an answer, such as amqp_basic_consume().
  Status last_reply();
  // Why the broker closes the channel or the connection, as "code text", if this frame does that; else "".
  static std::string closed_by(const amqp_frame_t& frame);
  static Error failure(int library_status);  // `library_status`: an AMQP_STATUS_ value other than OK

  // Makes the current call and every later one fail; a connect under way ends at its time-out at the latest.
  void interrupt();
  int fd() const { return amqp_get_sockfd(state_); }  // the socket, to poll; -1 before open()
  operator amqp_connection_state_t() const { return state_; }

 private:
  const amqp_connection_state_t state_;
  Dialer dialer_;
  std::atomic<int> shut_fd_{-1};  // the socket that interrupt() shuts down; -1: none yet
};

}  // namespace tocsin
