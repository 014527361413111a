// The parts of HttpServer (http_server.h, which explains limits and their answers); no other code includes this file.
// HttpConnection serves one client: it reads a request, has the HttpApp admit and run it, writes the answer, and begins
// again. HttpLoop is a network thread with its connections. HttpShared is what the network threads share.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <unordered_map>

#include "api/http.h"
#include "api/http_server.h"
#include "api/problem.h"
#include "base/mutex.h"

namespace tocsin {

class HttpConnection;
using SteadyTime = std::chrono::steady_clock::time_point;

// Shared by all network threads of one server. Thread: any.
struct HttpShared {
  HttpShared(HttpApp& a, const HttpLimits& l)
      : app(a), limits(l), body_budget(l.large_body_bytes), answer_budget(l.large_answer_bytes) {}

  HttpApp& app;
  const HttpLimits limits;
  ByteBudget body_budget, answer_budget;
  Mutex mutex;
  CondVar closed;  // notified when a connection has closed
  std::size_t connections TOCSIN_GUARDED_BY(mutex) = 0;
};

// The event loop of one network thread, and its connections. Every Responder holds a pointer to this object, so an
// answer can be posted at any time, also after the server's end.
// Thread: the network thread. Other threads may only post to `loop`; after the thread's end HttpServer::stop() calls
// close_all().
struct HttpLoop : std::enable_shared_from_this<HttpLoop> {
  explicit HttpLoop(std::shared_ptr<HttpShared> s) : shared(std::move(s)) {}

  // Has the deadlines of all connections checked, at most 250 ms after `deadline`. One timer serves the whole thread:
  // few deadlines are ever reached, and a timer per connection would be set again for every request.
  void check_deadlines_at(SteadyTime deadline);
  void add(const std::shared_ptr<HttpConnection>& connection);
  void forget(HttpConnection* connection);
  void drain();  // for stop(): idle connections close now, others after their answer
  void close_all();
  bool close_longest_idle();  // closes the connection that has been idle longest; false: no connection is idle
  std::vector<std::shared_ptr<HttpConnection>> all() const;  // a copy: closing changes the original

  boost::asio::io_context loop{1};
  // Keeps the loop running while there is no connection.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{loop.get_executor()};
  boost::asio::steady_timer sweep_timer{loop};
  SteadyTime next_sweep = SteadyTime::max();
  std::shared_ptr<HttpShared> shared;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections;
  bool is_draining = false;
};

// A state machine: each completed read, write or answer leads to the next phase, and each phase has a deadline. The
// data members are the socket, the request being read and the answer being written. A socket error closes the
// connection without an answer. Thread: the network thread of its loop.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<HttpLoop> loop, boost::asio::ip::tcp::socket socket);

  void start() { next_request(); }
  void refuse(const Problem& problem);  // instead of start(): answers with the problem, then closes
  void check_deadline(SteadyTime now);  // if it is over: answers 408 or 503, or closes (idle, writing or lingering)
  SteadyTime deadline() const { return deadline_; }
  std::optional<SteadyTime> idle_until() const;  // deadline for the first byte of the next request; nullopt: not idle
  void close_if_idle();                          // or if lingering
  void close();

 private:
  // - header: reads the head of a request; idle until its first byte.
  // - body: reads the body. waiting: waits for the app's answer. writing: sends the answer.
  // - lingering: ignores input after an answer that ends the connection, because closing with unread input could lose
  //   the answer.
  enum class Phase { header, body, waiting, writing, lingering };
  enum class After { keep, close, linger };  // what follows the answer
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void next_request();
  void enter(Phase phase, std::chrono::milliseconds time_allowed);
  void read_more();  // then advance()
  void advance();    // works on what has been received
  void advance_header();
  void advance_body();
  void header_done();
  void admit();
  bool reserve_body(std::size_t bytes);  // counts the request's body if it is large; false: too many at once
  bool reserve_answer(const HttpResponse& response);  // the same for an answer to a read; counts all others, too
  void continue_to_body();                            // sends 100 Continue, then reads the body
  void request_done();
  void watch_for_end();    // with a reply_timeout: closes when the client disconnects while it waits
  void watch_for_reset();  // as watch_for_end(), once the client has closed its sending half
  void reply(HttpResponse response);
  void fail(const Problem& problem) { send(problem_response(problem), After::linger); }  // ends the connection
  void send(HttpResponse response, After after);
  void written();
  void linger();
  std::string_view received() const;  // input that is not parsed yet

  std::shared_ptr<HttpShared> shared_;
  std::weak_ptr<HttpLoop> loop_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  // True: the connection is closed, or the reply time of its last request is over.
  const std::shared_ptr<std::atomic<bool>> is_gone_ = std::make_shared<std::atomic<bool>>(false);
  std::string address_;  // of the client
  HttpRequest request_;
  Admission admission_;
  std::string head_, body_;                        // of the answer being written
  std::shared_ptr<const SharedBody> shared_body_;  // in place of body_
  ByteBudget::Reservation answer_reservation_;
  Phase phase_ = Phase::header;
  After after_ = After::keep;
  SteadyTime deadline_{};
  std::size_t scanned_ = 0;  // bytes of the header already looked at
  bool is_closed_ = false;
  bool is_http10_ = false;
  bool is_head_ = false;  // method HEAD: the answer has no body
  bool is_read_ = false;  // method GET: the answer may be refused, because the request has changed nothing
  bool keep_alive_ = true;
  bool header_begun_ = false;  // false in Phase::header: idle
};

}  // namespace tocsin
