#include "api/http_connection.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "api/http_head.h"

namespace tocsin {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::size_t kReadSize = 4096;
constexpr std::size_t kBodyReadSize = 65536;
constexpr std::size_t kDrainedBody = 65536;  // of refused requests: reading so much costs less than a new connection
constexpr std::size_t kShortestChunkedRest = 5;  // "0\r\n\r\n"; the parser wants no less of an unfinished chunked body

std::string head_text(const HttpResponse& response, const char* connection) {
  std::string head;
  head.reserve(256);
  head += "HTTP/1.1 ";
  head += std::to_string(response.status);
  head += ' ';
  head += reason_phrase(response.status);
  head += "\r\nContent-Type: ";
  head += response.content_type;
  if (response.status != 304) {  // has no body; a length would state that of the 200
    head += "\r\nContent-Length: ";
    head += std::to_string(response.text().size());
  }
  head.append("\r\nCache-Control: ").append(response.cache_control);
  head += "\r\nX-Content-Type-Options: nosniff\r\n";
  for (const auto& [name, value] : response.headers) head.append(name).append(": ").append(value).append("\r\n");
  if (*connection != '\0') head.append("Connection: ").append(connection).append("\r\n");
  return head += "\r\n";
}

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpLoop> loop, asio::ip::tcp::socket socket)
    : shared_(loop->shared), loop_(loop), socket_(std::move(socket)) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (const auto peer = socket_.remote_endpoint(ignored); !ignored) address_ = peer.address().to_string();
  socket_.non_blocking(true, ignored);  // for the peek of watch_for_end(); asynchronous calls are not affected
}

void HttpConnection::refuse(const Problem& problem) { fail(problem); }

std::string_view HttpConnection::received() const {
  return {static_cast<const char*>(buffer_.data().data()), buffer_.size()};
}

void HttpConnection::enter(Phase phase, std::chrono::milliseconds time_allowed) {
  phase_ = phase;
  deadline_ = std::chrono::steady_clock::now() + time_allowed;
  if (const auto loop = loop_.lock()) loop->check_deadlines_at(deadline_);
}

void HttpConnection::next_request() {
  parser_.reset();
  admission_ = {};
  scanned_ = 0;
  header_begun_ = false;
  enter(Phase::header, shared_->limits.idle_time);
  advance();
}

void HttpConnection::read_more() {
  const std::size_t missing =
      phase_ == Phase::body ? parser_->content_length_remaining().value_or(kReadSize) : kReadSize;
  const auto space = buffer_.prepare(std::clamp(missing, kReadSize, kBodyReadSize));
  socket_.async_read_some(space, [self = shared_from_this()](error_code error, std::size_t n) {
    if (self->is_closed_ || error == asio::error::operation_aborted) return;
    if (self->phase_ != Phase::header && self->phase_ != Phase::body && self->phase_ != Phase::lingering) return;
    if (error) return self->close();
    self->buffer_.commit(n);
    self->advance();
  });
}

void HttpConnection::advance() {
  if (phase_ == Phase::header) return advance_header();
  if (phase_ == Phase::body) return advance_body();
  buffer_.consume(buffer_.size());  // lingering
  read_more();
}

void HttpConnection::advance_header() {
  if (!header_begun_) {
    // Some clients end a body with one line break too many.
    while (received().starts_with("\r\n")) buffer_.consume(2);
    if (buffer_.size() == 0) {
      const auto loop = loop_.lock();
      return loop && loop->is_draining ? close() : read_more();
    }
    if (received() != "\r") {
      header_begun_ = true;
      enter(Phase::header, shared_->limits.header_time);
    }
  }
  const HeadScan head = scan_head(received(), scanned_, shared_->limits.header_lines);
  if (head.mistake != nullptr) return fail({400, head.mistake});
  if ((head.size == 0 ? buffer_.size() : head.size) > shared_->limits.header_bytes)
    return fail({431, "The header is larger than " + std::to_string(shared_->limits.header_bytes) + " bytes."});
  if (head.size == 0) {
    scanned_ = buffer_.size();
    return read_more();
  }
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_->limits.header_bytes) + 1);
  parser_->body_limit(boost::none);
  error_code error;
  parser_->put(asio::buffer(received().data(), head.size), error);
  buffer_.consume(head.size);
  if ((error && error != http::error::need_more) || !parser_->is_header_done())
    return fail({400, "This is not an HTTP request."});
  header_done();
}

void HttpConnection::header_done() {
  is_http10_ = parser_->get().version() < 11;
  is_head_ = parser_->get().method() == http::verb::head;
  is_read_ = parser_->get().method() == http::verb::get;
  keep_alive_ = parser_->keep_alive();
  if (const auto problem = check_head(parser_->get())) return fail(*problem);
  auto request = request_of(parser_->get());
  if (!request) return fail({400, "The target of the request must be a path."});
  request_ = std::move(*request);
  request_.address = address_;
  admit();
}

void HttpConnection::admit() {
  const bool is_chunked = parser_->chunked();
  const std::uint64_t length = parser_->content_length().value_or(0);
  const bool expects_continue = parser_->get().find(http::field::expect) != parser_->get().end() && !is_http10_;
  admission_ = shared_->app.admit(request_);
  if (!is_chunked && length == 0) return request_done();
  if (admission_.refusal) {
    if (expects_continue || length > kDrainedBody) return send(std::move(*admission_.refusal), After::linger);
    admission_.body_limit = kDrainedBody;
  }
  const std::size_t limit = admission_.body_limit;
  if (length > limit) return fail({413, "The body is larger than " + std::to_string(limit) + " bytes."});
  if (!reserve_body(is_chunked ? limit : length)) return fail({503, "Too many large requests at once.", "", 1});
  parser_->body_limit(limit);
  enter(Phase::body, shared_->limits.body_time);
  expects_continue&& buffer_.size() == 0 ? continue_to_body() : advance_body();
}

bool HttpConnection::reserve_body(std::size_t bytes) {
  if (bytes <= kSmallBody) return true;
  request_.reservation = shared_->body_budget.reserve(bytes);
  return request_.reservation != nullptr;
}

bool HttpConnection::reserve_answer(const HttpResponse& response) {
  const std::size_t bytes = response.text().size();
  if (is_head_ || bytes <= kSmallBody) return true;
  ByteBudget& budget = shared_->answer_budget;
  answer_reservation_ = response.shared_body ? response.shared_body->reserve(budget)
                        : is_read_           ? budget.reserve(bytes)
                                             : budget.reserve_in_any_case(bytes);
  return answer_reservation_ != nullptr;
}

void HttpConnection::continue_to_body() {
  asio::async_write(socket_, asio::buffer(kContinue), [self = shared_from_this()](error_code error, std::size_t) {
    if (self->is_closed_ || self->phase_ != Phase::body) return;
    error ? self->close() : self->advance_body();
  });
}

void HttpConnection::advance_body() {
  while (!parser_->is_done()) {
    if (buffer_.size() == 0 || (parser_->chunked() && buffer_.size() < kShortestChunkedRest)) return read_more();
    error_code error;
    const std::size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    if (error == http::error::need_more) {
      // What stays unread is a chunk header or trailer: bounded like the header, and as strict about line ends.
      if (buffer_.size() > shared_->limits.header_bytes) return fail({400, "A chunk header or trailer is too long."});
      if (has_bare_line_feed(received())) return fail({400, "A line ends with a bare line feed."});
      return read_more();
    }
    if (error == http::error::body_limit)
      return fail({413, "The body is larger than " + std::to_string(admission_.body_limit) + " bytes."});
    if (error) return fail({400, "The chunks of the body are malformed."});
  }
  request_done();
}

void HttpConnection::request_done() {
  if (admission_.refusal) return send(std::move(*admission_.refusal), keep_alive_ ? After::keep : After::close);
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  enter(Phase::waiting, admission_.reply_timeout.value_or(shared_->limits.reply_time));
  const auto loop = loop_.lock();
  if (!loop) return close();
  if (admission_.reply_timeout) watch_for_end();
  Responder respond(
      [loop, weak = weak_from_this()](HttpResponse response) {
        // dispatch: at once when the answer is given on this very thread
        asio::dispatch(loop->loop, [weak, response = std::move(response)]() mutable {
          if (const auto self = weak.lock()) self->reply(std::move(response));
        });
      },
      is_gone_);
  const auto run = std::move(admission_.run);
  run(std::move(request_), std::move(respond));
}

// Nothing is read while a request is answered; but a caller that waits long may disconnect, and an answer that leases
// jobs must not be given to a closed connection. A caller that pipelines is not watched any further: only reading its
// next request would show the end of the connection.
void HttpConnection::watch_for_end() {
  socket_.async_wait(asio::ip::tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
    if (error || self->is_closed_ || self->phase_ != Phase::waiting) return;
    char byte = 0;
    error_code seen;
    self->socket_.receive(asio::buffer(&byte, 1), asio::socket_base::message_peek, seen);
    if (seen == asio::error::would_block) return self->watch_for_end();
    if (seen == asio::error::eof && !self->is_http10_) return self->watch_for_reset();
    if (seen) self->close();
  });
}

// The caller sends no more. Either it has closed the connection, or only its own half of it and still waits for the
// answer. Sending a piece of the answer shows which: a closed socket replies to it with a reset. HTTP/1.0 has no
// interim answers that could be sent: its caller counts as gone.
void HttpConnection::watch_for_reset() {
  error_code error;
  socket_.send(asio::buffer(kContinue), 0, error);  // never blocks: the socket's buffer is empty
  if (error) return close();
  socket_.async_wait(asio::ip::tcp::socket::wait_error, [self = shared_from_this()](error_code failed) {
    if (failed || self->is_closed_ || self->phase_ != Phase::waiting) return;
    self->close();
  });
}

// An answer after the reply time is ignored: the connection is in another phase then, and will be closed.
void HttpConnection::reply(HttpResponse response) {
  if (is_closed_ || phase_ != Phase::waiting) return;
  send(std::move(response), keep_alive_ ? After::keep : After::close);
}

void HttpConnection::send(HttpResponse response, After after) {
  if (const auto loop = loop_.lock(); !loop || (loop->is_draining && after == After::keep)) after = After::close;
  after_ = after;
  if (!reserve_answer(response)) response = problem_response({503, "Too many large answers at once.", "", 1});
  shared_->app.answered(admission_.route, response.status);
  head_ = head_text(response, after != After::keep ? "close" : is_http10_ ? "keep-alive" : "");
  body_.clear();
  if (!is_head_ && response.text().size() <= kSmallBody) {  // copied: cheaper than a second buffer
    head_ += response.text();
  } else if (!is_head_) {
    body_ = std::move(response.body);
    shared_body_ = std::move(response.shared_body);
  }
  enter(Phase::writing, shared_->limits.write_time);
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(head_),
                                                  asio::buffer(shared_body_ ? shared_body_->text() : body_)};
  asio::async_write(socket_, buffers, [self = shared_from_this()](error_code error, std::size_t) {
    if (self->is_closed_) return;
    error ? self->close() : self->written();
  });
}

void HttpConnection::written() {
  if (request_.reservation) {  // of a request that was refused or took too long, and was not run
    parser_.reset();
    request_ = {};
  }
  if (body_.capacity() > kSmallBody) body_ = {};
  shared_body_.reset();
  answer_reservation_.reset();
  if (after_ == After::close) return close();
  if (after_ == After::linger) return linger();
  if (buffer_.size() == 0 && buffer_.capacity() > kSmallBody) buffer_.shrink_to_fit();
  next_request();
}

void HttpConnection::linger() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  enter(Phase::lingering, shared_->limits.linger_time);
  advance();
}

void HttpConnection::check_deadline(SteadyTime now) {
  if (now < deadline_) return;
  error_code ignored;
  switch (phase_) {
    case Phase::header:
      if (!header_begun_) return close();
      socket_.cancel(ignored);
      return fail({408, "The header took too long."});
    case Phase::body:
      socket_.cancel(ignored);
      return fail({408, "The body took too long."});
    case Phase::waiting:
      *is_gone_ = true;  // jobs claimed for this caller from now on are released, and work is not begun
      // Without Retry-After: clients that repeat requests by it would make a job twice.
      return fail({503, "The request took too long; its outcome is unknown."});
    case Phase::writing:
    case Phase::lingering:
      return close();
  }
}

std::optional<SteadyTime> HttpConnection::idle_until() const {
  return phase_ == Phase::header && !header_begun_ ? std::optional(deadline_) : std::nullopt;
}

void HttpConnection::close_if_idle() {
  if (phase_ == Phase::lingering || idle_until()) close();
}

void HttpConnection::close() {
  if (std::exchange(is_closed_, true)) return;
  *is_gone_ = true;
  error_code ignored;
  socket_.close(ignored);
  if (const auto loop = loop_.lock()) loop->forget(this);
}

}  // namespace tocsin
