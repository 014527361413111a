// OutboundExchange: one HTTP request of HttpSender, from send() until the body of the answer has been read.
// OutboundConnection: a connection, which carries one request after the other. Owned by SenderLoop (sender_loop.h).
// Thread: the loop's, once the request is queued.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <optional>
#include <string>

#include "delivery/http_sender.h"

namespace tocsin {

struct OutboundConnection {
  using Socket = boost::asio::ip::tcp::socket;

  OutboundConnection(boost::asio::io_context& io, boost::asio::ssl::context& tls_context, bool is_https);

  // Whether an idle connection can be reused: the peer has neither closed it nor sent anything.
  bool is_fresh();

  Socket socket;
  std::optional<boost::asio::ssl::stream<Socket&>> tls;
  boost::beast::flat_buffer buffer;
  MonoTime idle_since{};  // end of its last request
};

struct OutboundExchange {
  OutboundExchange(boost::asio::io_context& io, OutboundRequest its_request, HttpSender::Done its_done)
      : request(std::move(its_request)), done(std::move(its_done)), timer(io), lookup_wait(io) {}

  void finish(Result<OutboundReply> reply) {
    if (done) std::exchange(done, nullptr)(std::move(reply));
  }
  // Ends the request with an Error. `code` absent: in_doubt if a byte may have been sent; otherwise unavailable if a
  // connection was being made or used; otherwise conflict.
  void fail(const std::string& why, std::optional<ErrorCode> code = {});
  // The same with the message of `ec` or, after interrupt(), with the reason given there.
  void fail(const boost::system::error_code& ec);
  // Makes the lookup, connect, write or read under way fail at once, with `why` as its message. Only the first call
  // counts. It does not end a request that waits for its turn: call fail() for that.
  void interrupt(std::string why);

  OutboundRequest request;
  HttpSender::Done done;                     // empty once called
  boost::asio::steady_timer timer;           // calls interrupt(): at start_by while it waits, then at its deadline
  boost::asio::steady_timer lookup_wait;     // never expires: cancelled when the lookup has its answer
  OutboundConnection* connection = nullptr;  // in use now; null: none
  const char* phase = "waiting for a connection";  // for error messages
  std::string interruption;                        // reason given to interrupt(), or empty
  bool has_begun = false;                          // its turn has come: a connection is being made or reused
  bool is_sent = false;                            // the first byte may have left
};

// Makes the TLS handshake on a new connection, and checks the peer's certificate and host name. On an error the
// exchange may have failed already, with a better message; a later fail() is ignored.
boost::asio::awaitable<boost::system::error_code> negotiate_tls(OutboundExchange& exchange);

// Sends the request unless start_by or its deadline has passed. Ends the exchange with the answer or a failure, and
// discards the rest of the answer. True: the connection can be reused. REQUIRES: exchange.connection is connected.
boost::asio::awaitable<bool> post_request(OutboundExchange& exchange, const Clock& clock);

}  // namespace tocsin
