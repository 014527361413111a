#include "delivery/outbound_exchange.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>

namespace tocsin {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kMaxReplyHeadBytes = 16 * 1024;
constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 10;
constexpr std::size_t kReadBytes = 4096;

// Completion token: the error goes to `ec` instead of an exception.
auto into(error_code& ec) { return asio::redirect_error(asio::use_awaitable, ec); }

using AnswerParser = http::response_parser<http::buffer_body>;

// Discards the buffered part of an answer's body. False: it is malformed.
bool discard_body(AnswerParser& parser, boost::beast::flat_buffer& buffer) {
  std::array<char, 2048> ignored;
  while (!parser.is_done() && buffer.size() > 0) {
    parser.get().body().data = ignored.data();
    parser.get().body().size = ignored.size();
    error_code ec;
    const std::size_t n = parser.put(buffer.data(), ec);
    buffer.consume(n);
    if (ec == http::error::need_more || (!ec && n == 0)) return true;
    if (ec && ec != http::error::need_buffer) return false;
  }
  return true;
}

// The answer's header has arrived: ends the exchange, then discards the body. The bytes that came with the header are
// discarded first, so that the connection is free before `done` runs. True: it is ready for another request.
template <class Stream>
asio::awaitable<bool> conclude(Stream& stream, OutboundExchange& exchange, AnswerParser& parser) {
  auto& buffer = exchange.connection->buffer;
  bool is_sound = discard_body(parser, buffer);
  exchange.finish(
      OutboundReply{static_cast<int>(parser.get().result_int()), std::string(parser.get()[http::field::retry_after])});

  for (std::size_t total = 0; is_sound && !parser.is_done() && total < kMaxBodyBytes;) {
    error_code ec;
    const std::size_t n_wanted = std::min(kReadBytes, buffer.max_size() - buffer.size());
    const std::size_t n = co_await stream.async_read_some(buffer.prepare(n_wanted), into(ec));
    buffer.commit(n);
    total += n;
    is_sound = !ec && n > 0 && discard_body(parser, buffer);
  }
  co_return is_sound&& parser.is_done() && parser.keep_alive() && buffer.size() == 0 && exchange.interruption.empty();
}

template <class Stream>
asio::awaitable<bool> post_on(Stream& stream, OutboundExchange& exchange, const Clock& clock) {
  http::request<http::string_body> message{http::verb::post, exchange.request.target.path, 11};
  message.set(http::field::host, exchange.request.target.authority);
  for (const auto& [name, value] : exchange.request.headers) message.insert(name, value);
  message.body() = std::move(exchange.request.body);
  message.prepare_payload();

  // The process may have been frozen: then the deadline has passed before its timer could run, and the lease with it.
  if (clock.now() >= std::min(exchange.request.start_by, exchange.request.deadline)) {
    // Too late to begin; the connection may serve the next.
    exchange.has_begun = false;
    exchange.phase = "connecting";
    exchange.fail("no connection was ready in time");
    co_return true;
  }
  error_code ec;
  exchange.phase = "sending";
  exchange.is_sent = true;
  co_await http::async_write(stream, message, into(ec));
  if (ec) {
    exchange.fail(ec);
    co_return false;
  }

  exchange.phase = "waiting for the answer";
  std::optional<AnswerParser> parser;
  do {  // 1xx: not the answer yet
    parser.emplace();
    parser->header_limit(kMaxReplyHeadBytes);
    parser->body_limit(boost::none);  // counted below; the parser's own limit would refuse the whole answer
    co_await http::async_read_header(stream, exchange.connection->buffer, *parser, into(ec));
    if (ec) {
      exchange.fail(ec);
      co_return false;
    }
  } while (parser->get().result_int() / 100 == 1 && parser->get().result() != http::status::switching_protocols);
  co_return co_await conclude(stream, exchange, *parser);
}

}  // namespace

OutboundConnection::OutboundConnection(asio::io_context& io, ssl::context& tls_context, bool is_https)
    : socket(io), buffer(std::size_t{2} * kMaxReplyHeadBytes) {
  buffer.reserve(kReadBytes);  // the usual answer in one read
  if (is_https) tls.emplace(socket, tls_context);
}

bool OutboundConnection::is_fresh() {
  char byte;
  return ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

void OutboundExchange::fail(const std::string& why, std::optional<ErrorCode> code) {
  const ErrorCode by_progress = is_sent     ? ErrorCode::in_doubt
                                : has_begun ? ErrorCode::unavailable
                                            : ErrorCode::conflict;
  finish(Error{code.value_or(by_progress), request.target.origin + ": " + why, {}});
}

void OutboundExchange::fail(const error_code& ec) {
  if (!interruption.empty()) return fail(interruption);
  const bool is_no_http = ec.category() == make_error_code(http::error::bad_version).category() &&
                          ec != http::error::end_of_stream && ec != http::error::partial_message &&
                          ec != http::error::header_limit && ec != http::error::buffer_overflow;
  fail(phase + std::string(is_no_http ? ": malformed HTTP response: " : ": ") + ec.message());
}

void OutboundExchange::interrupt(std::string why) {
  if (!interruption.empty()) return;
  interruption = std::move(why);
  lookup_wait.cancel();
  error_code ignored;
  if (connection) connection->socket.close(ignored);
}

asio::awaitable<error_code> negotiate_tls(OutboundExchange& exchange) {
  exchange.phase = "negotiating TLS";
  const std::string& host = exchange.request.target.host;
  ssl::stream<tcp::socket&>& stream = *exchange.connection->tls;
  SSL* const session = stream.native_handle();
  X509_VERIFY_PARAM* const expected = SSL_get0_param(session);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) != 1) {  // not an address
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(expected, host.data(), host.size()) != 1 ||
        SSL_set_tlsext_host_name(session, host.c_str()) != 1) {
      co_return error_code(asio::error::invalid_argument);
    }
  }
  error_code ec;
  co_await stream.async_handshake(ssl::stream_base::client, into(ec));
  if (const long verdict = SSL_get_verify_result(session);
      ec && verdict != X509_V_OK && exchange.interruption.empty()) {
    exchange.fail(std::string("negotiating TLS: ") + X509_verify_cert_error_string(verdict));
  }
  co_return ec;
}

asio::awaitable<bool> post_request(OutboundExchange& exchange, const Clock& clock) {
  OutboundConnection& connection = *exchange.connection;
  return connection.tls ? post_on(*connection.tls, exchange, clock) : post_on(connection.socket, exchange, clock);
}

}  // namespace tocsin
