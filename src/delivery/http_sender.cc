#include "delivery/http_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "base/assert.h"
#include "base/worker_pool.h"

namespace tocsin {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kMaxHeaderBytes = 16 * 1024;
constexpr std::size_t kMaxBodyBytes = 64 * 1024;
constexpr std::size_t kReadBytes = 4096;
constexpr Duration kSweepInterval = std::chrono::seconds(1);
// getaddrinfo() blocks. One lookup per origin at a time, so four dead names are needed before a fifth origin waits.
constexpr int kResolverThreads = 4;
constexpr std::size_t kMaxLookupsWaiting = 1024;

// Completion token: the error goes to `ec` instead of an exception.
auto into(error_code& ec) { return asio::redirect_error(asio::use_awaitable, ec); }

struct Connection {
  Connection(asio::io_context& io, ssl::context& tls_context, bool is_https) : socket(io) {
    buffer.reserve(kReadBytes);  // the usual answer in one read
    if (is_https) tls.emplace(socket, tls_context);
  }

  // Neither closed by the peer nor holding bytes nobody asked for.
  bool is_fresh() {
    char byte;
    return ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  tcp::socket socket;
  std::optional<ssl::stream<tcp::socket&>> tls;
  boost::beast::flat_buffer buffer{2 * kMaxHeaderBytes};
  MonoTime idle_since{};
};

// One request from send() to the end of its answer's body.
struct Exchange {
  Exchange(asio::io_context& io, OutboundRequest its_request, HttpSender::Done its_done)
      : request(std::move(its_request)), done(std::move(its_done)), timer(io), lookup_wait(io) {}

  void finish(Result<OutboundReply> reply) {
    if (done) std::exchange(done, nullptr)(std::move(reply));
  }
  void fail(const std::string& why) {
    finish(Error{is_sent     ? ErrorCode::in_doubt
                 : has_begun ? ErrorCode::unavailable
                             : ErrorCode::conflict,
                 request.target.origin + ": " + why,
                 {}});
  }
  void fail(const error_code& ec) { fail(interruption.empty() ? phase + (": " + ec.message()) : interruption); }

  // Makes whatever the exchange waits for fail at once.
  void interrupt(std::string why) {
    if (!interruption.empty()) return;
    interruption = std::move(why);
    lookup_wait.cancel();
    error_code ignored;
    if (connection) connection->socket.close(ignored);
  }

  OutboundRequest request;
  HttpSender::Done done;           // empty once called
  asio::steady_timer timer;        // the deadline
  asio::steady_timer lookup_wait;  // never expires: cancelled when the lookup has its answer
  Connection* connection = nullptr;
  const char* phase = "waiting for a connection";
  std::string interruption;  // why it must end, or empty
  bool has_begun = false;    // it has its turn: a connection is being made or reused
  bool is_sent = false;      // the first byte may have left
};
using ExchangePtr = std::shared_ptr<Exchange>;

// One getaddrinfo() call and who waits for it.
struct Lookup {
  bool is_done = false;
  error_code ec;
  std::vector<tcp::endpoint> addresses;
  std::vector<ExchangePtr> waiting;
};

struct Origin {
  std::unordered_set<ExchangePtr> active;
  std::deque<ExchangePtr> waiting;                // for room among the active ones
  std::vector<std::unique_ptr<Connection>> idle;  // the one used last is at the back
  std::shared_ptr<Lookup> lookup;                 // the last one

  bool is_unused() const { return active.empty() && waiting.empty() && idle.empty(); }
};

using AnswerParser = http::response_parser<http::buffer_body>;

// Takes what is buffered of an answer's body. False: it breaks the rules of HTTP.
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

}  // namespace

// All private functions: sender's thread only.
class HttpSender::Engine {
 public:
  Engine(HttpSenderOptions options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  Status start();
  void stop();
  void send(OutboundRequest request, Done done);

 private:
  void accept(const ExchangePtr& exchange);
  void begin(Origin& origin, const ExchangePtr& exchange);
  void end(Origin& origin, const ExchangePtr& exchange);
  void arm(const ExchangePtr& exchange, Duration timeout);
  void interrupt_all();
  void sweep();

  asio::awaitable<void> run(Origin& origin, ExchangePtr exchange);
  std::unique_ptr<Connection> take_idle(Origin& origin);
  asio::awaitable<error_code> open(Origin& origin, const ExchangePtr& exchange);
  asio::awaitable<error_code> resolve(Origin& origin, const ExchangePtr& exchange,
                                      std::vector<tcp::endpoint>& addresses);
  void start_lookup(const std::shared_ptr<Lookup>& lookup, const HttpTarget& target);
  asio::awaitable<error_code> handshake(Exchange& exchange);
  template <class Stream>
  asio::awaitable<bool> post(Stream& stream, Exchange& exchange);
  template <class Stream>
  asio::awaitable<bool> conclude(Stream& stream, Exchange& exchange, AnswerParser& parser);

  const HttpSenderOptions options_;
  const Clock& clock_;
  const std::shared_ptr<asio::io_context> io_ =
      std::make_shared<asio::io_context>(1);  // a stuck lookup may outlive the engine
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_->get_executor()};
  ssl::context tls_{ssl::context::tls_client};
  asio::steady_timer sweep_timer_{*io_};
  std::unordered_map<std::string, Origin> origins_;
  bool is_stopping_ = false;

  std::mutex mutex_;  // orders every send() before or after stop()
  bool is_closed_ = false;
  std::thread thread_;
  WorkerPool resolvers_{kResolverThreads, kMaxLookupsWaiting};
};

Status HttpSender::Engine::start() {
  error_code ec;
  tls_.set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  tls_.set_verify_mode(ssl::verify_peer);
  tls_.set_default_verify_paths(ec);
  if (!options_.ca_file.empty()) {
    tls_.load_verify_file(options_.ca_file, ec);
    if (ec) return Error{ErrorCode::invalid, options_.ca_file + ": " + ec.message(), {}};
  }
  sweep();
  thread_ = std::thread([this] { io_->run(); });
  return Unit{};
}

void HttpSender::Engine::stop() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
  }
  asio::post(*io_, [this] { interrupt_all(); });
  guard_.reset();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    io_->run();
  }
  resolvers_.stop(Duration{0});
}

void HttpSender::Engine::send(OutboundRequest request, Done done) {
  auto exchange = std::make_shared<Exchange>(*io_, std::move(request), std::move(done));
  {
    std::lock_guard lock(mutex_);
    if (!is_closed_) {
      asio::post(*io_, [this, exchange] { accept(exchange); });
      return;
    }
  }
  exchange->fail("shutting down");
}

void HttpSender::Engine::accept(const ExchangePtr& exchange) {
  Origin& origin = origins_[exchange->request.target.origin];
  if (origin.active.size() < static_cast<std::size_t>(options_.max_connections)) return begin(origin, exchange);
  origin.waiting.push_back(exchange);
  arm(exchange, exchange->request.start_by - clock_.now());
}

void HttpSender::Engine::begin(Origin& origin, const ExchangePtr& exchange) {
  exchange->has_begun = true;
  origin.active.insert(exchange);
  arm(exchange, exchange->request.timeout);
  asio::co_spawn(*io_, run(origin, exchange), [this, &origin, exchange](std::exception_ptr failure) {
    if (failure) exchange->fail(std::string(exchange->phase) + ": internal error");
    end(origin, exchange);
  });
}

void HttpSender::Engine::end(Origin& origin, const ExchangePtr& exchange) {
  TOCSIN_ASSERT(!exchange->done);
  exchange->timer.cancel();
  origin.active.erase(exchange);
  while (!origin.waiting.empty() && origin.active.size() < static_cast<std::size_t>(options_.max_connections)) {
    const ExchangePtr next = std::move(origin.waiting.front());
    origin.waiting.pop_front();
    begin(origin, next);
  }
}

void HttpSender::Engine::arm(const ExchangePtr& exchange, Duration timeout) {
  const Duration left = std::min(timeout, exchange->request.deadline - clock_.now());
  exchange->timer.expires_after(std::max(left, Duration{0}));
  exchange->timer.async_wait([this, exchange](const error_code& ec) {
    if (ec || exchange->timer.expiry() > std::chrono::steady_clock::now()) return;  // cancelled, or armed anew
    exchange->interrupt(std::string("timed out while ") + exchange->phase);
    if (std::erase(origins_[exchange->request.target.origin].waiting, exchange) > 0)
      exchange->fail(exchange->interruption);
  });
}

void HttpSender::Engine::interrupt_all() {
  is_stopping_ = true;
  sweep_timer_.cancel();
  for (auto& [name, origin] : origins_) {
    for (const ExchangePtr& exchange : std::exchange(origin.waiting, {})) {
      exchange->timer.cancel();
      exchange->fail("shutting down");
    }
    for (const ExchangePtr& exchange : origin.active) exchange->interrupt("shutting down");
    origin.idle.clear();
  }
}

void HttpSender::Engine::sweep() {
  const MonoTime idle_before = clock_.now() - options_.idle_timeout;
  for (auto it = origins_.begin(); it != origins_.end();) {
    std::erase_if(it->second.idle, [&](const auto& connection) { return connection->idle_since <= idle_before; });
    it = it->second.is_unused() ? origins_.erase(it) : std::next(it);
  }
  sweep_timer_.expires_after(std::min(kSweepInterval, options_.idle_timeout));
  sweep_timer_.async_wait([this](const error_code& ec) {
    if (!ec && !is_stopping_) sweep();
  });
}

asio::awaitable<void> HttpSender::Engine::run(Origin& origin, ExchangePtr exchange) {
  std::unique_ptr<Connection> connection = take_idle(origin);
  const bool is_kept = connection != nullptr;
  if (!is_kept) connection = std::make_unique<Connection>(*io_, tls_, exchange->request.target.is_https);
  exchange->connection = connection.get();

  error_code ec;
  if (!is_kept && exchange->interruption.empty()) ec = co_await open(origin, exchange);
  bool can_be_kept = false;
  if (ec || !exchange->interruption.empty()) {
    exchange->fail(ec);
  } else if (connection->tls) {
    can_be_kept = co_await post(*connection->tls, *exchange);
  } else {
    can_be_kept = co_await post(connection->socket, *exchange);
  }
  exchange->connection = nullptr;
  if (!can_be_kept || is_stopping_) co_return;
  connection->idle_since = clock_.now();
  origin.idle.push_back(std::move(connection));
}

std::unique_ptr<Connection> HttpSender::Engine::take_idle(Origin& origin) {
  while (!origin.idle.empty()) {
    std::unique_ptr<Connection> connection = std::move(origin.idle.back());
    origin.idle.pop_back();
    if (connection->is_fresh()) return connection;
  }
  return nullptr;
}

asio::awaitable<error_code> HttpSender::Engine::open(Origin& origin, const ExchangePtr& exchange) {
  exchange->phase = "resolving the name";
  std::vector<tcp::endpoint> addresses;
  error_code ec = co_await resolve(origin, exchange, addresses);
  if (ec || !exchange->interruption.empty()) co_return ec;

  exchange->phase = "connecting";
  tcp::socket& socket = exchange->connection->socket;
  co_await asio::async_connect(socket, addresses, into(ec));
  if (ec) co_return ec;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  if (exchange->connection->tls) ec = co_await handshake(*exchange);
  co_return ec;
}

asio::awaitable<error_code> HttpSender::Engine::resolve(Origin& origin, const ExchangePtr& exchange,
                                                        std::vector<tcp::endpoint>& addresses) {
  const HttpTarget& target = exchange->request.target;
  error_code ec;
  if (const auto address = asio::ip::make_address(target.host, ec); !ec) {
    addresses.emplace_back(address, target.port);
    co_return error_code{};
  }
  if (!origin.lookup || origin.lookup->is_done) {
    origin.lookup = std::make_shared<Lookup>();
    start_lookup(origin.lookup, target);
  }
  const std::shared_ptr<Lookup> lookup = origin.lookup;
  lookup->waiting.push_back(exchange);
  exchange->lookup_wait.expires_at(asio::steady_timer::time_point::max());
  error_code cancelled;
  if (!lookup->is_done) co_await exchange->lookup_wait.async_wait(into(cancelled));
  std::erase(lookup->waiting, exchange);  // interrupted: a lookup may last longer than many exchanges
  addresses = lookup->addresses;
  co_return lookup->ec;
}

void HttpSender::Engine::start_lookup(const std::shared_ptr<Lookup>& lookup, const HttpTarget& target) {
  const bool is_accepted = resolvers_.try_run([io = io_, lookup, host = target.host, port = target.port] {
    error_code ec;
    const auto found = tcp::resolver(*io).resolve(host, std::to_string(port), tcp::resolver::numeric_service, ec);
    asio::post(*io, [lookup, ec, addresses = std::vector<tcp::endpoint>(found.begin(), found.end())] {
      lookup->is_done = true;
      lookup->ec = ec;
      lookup->addresses = addresses;
      for (const ExchangePtr& exchange : std::exchange(lookup->waiting, {})) exchange->lookup_wait.cancel();
    });
  });
  if (is_accepted) return;
  lookup->is_done = true;
  lookup->ec = asio::error::try_again;
}

asio::awaitable<error_code> HttpSender::Engine::handshake(Exchange& exchange) {
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

// One request and its answer. True: the connection is ready for another.
template <class Stream>
asio::awaitable<bool> HttpSender::Engine::post(Stream& stream, Exchange& exchange) {
  http::request<http::string_body> message{http::verb::post, exchange.request.target.path, 11};
  message.set(http::field::host, exchange.request.target.authority);
  for (const auto& [name, value] : exchange.request.headers) message.insert(name, value);
  message.body() = std::move(exchange.request.body);
  message.prepare_payload();

  if (clock_.now() >= exchange.request.start_by) {
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
    parser->header_limit(kMaxHeaderBytes);
    parser->body_limit(boost::none);  // counted below; the parser's own limit would refuse the whole answer
    co_await http::async_read_header(stream, exchange.connection->buffer, *parser, into(ec));
    if (ec) {
      exchange.fail(ec);
      co_return false;
    }
  } while (parser->get().result_int() / 100 == 1 && parser->get().result() != http::status::switching_protocols);
  co_return co_await conclude(stream, exchange, *parser);
}

// The answer's header is here: ends the exchange, then reads the body away. What has come along with the header is read
// first, so that the connection is free before anyone hears of the end. True: it is ready for another request.
template <class Stream>
asio::awaitable<bool> HttpSender::Engine::conclude(Stream& stream, Exchange& exchange, AnswerParser& parser) {
  auto& buffer = exchange.connection->buffer;
  bool is_sound = discard_body(parser, buffer);
  exchange.finish(
      OutboundReply{static_cast<int>(parser.get().result_int()), std::string(parser.get()[http::field::retry_after])});

  for (std::size_t total = 0; is_sound && !parser.is_done() && total < kMaxBodyBytes;) {
    error_code ec;
    const std::size_t room = std::min(kReadBytes, buffer.max_size() - buffer.size());
    const std::size_t n = co_await stream.async_read_some(buffer.prepare(room), into(ec));
    buffer.commit(n);
    total += n;
    is_sound = !ec && n > 0 && discard_body(parser, buffer);
  }
  co_return is_sound&& parser.is_done() && parser.keep_alive() && buffer.size() == 0 && exchange.interruption.empty();
}

HttpSender::HttpSender(HttpSenderOptions options, const Clock& clock)
    : engine_(std::make_unique<Engine>(std::move(options), clock)) {}
HttpSender::~HttpSender() { stop(); }
Status HttpSender::start() { return engine_->start(); }
void HttpSender::stop() { engine_->stop(); }
void HttpSender::send(OutboundRequest request, Done done) { engine_->send(std::move(request), std::move(done)); }

}  // namespace tocsin
