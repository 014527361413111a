#include "api/http_server.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <thread>

#include "api/http_connection.h"
#include "base/mutex.h"
#include "base/thread_guard.h"

namespace tocsin {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kRefusedConnections = 128;  // get a 503; beyond them the socket is closed without an answer
constexpr milliseconds kAcceptPause(100);         // when the process has no file descriptors left

// How much later than it falls a deadline is noticed, at most.
milliseconds sweep_interval(const HttpLimits& limits) {
  const milliseconds shortest = std::min({limits.header_time, limits.body_time, limits.idle_time, limits.reply_time,
                                          limits.write_time, limits.linger_time});
  return std::clamp(shortest / 4, milliseconds(5), milliseconds(250));
}

}  // namespace

void HttpLoop::add(const std::shared_ptr<HttpConnection>& connection) {
  connections.emplace(connection.get(), connection);
}

void HttpLoop::check_deadlines_at(SteadyTime deadline) {
  const SteadyTime at = deadline + sweep_interval(shared->limits);  // those of a moment together
  if (at >= next_sweep) return;
  next_sweep = at;
  sweep_timer.expires_at(at);
  sweep_timer.async_wait([this](error_code error) {
    if (error) return;  // cancelled, because an earlier deadline was set; one sweep too many does no harm
    next_sweep = SteadyTime::max();
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const auto& connection : all()) connection->check_deadline(now);
    SteadyTime first = SteadyTime::max();
    for (const auto& [raw, connection] : connections) first = std::min(first, raw->deadline());
    if (!connections.empty()) check_deadlines_at(std::max(first, now));
  });
}

void HttpLoop::forget(HttpConnection* connection) {
  if (connections.erase(connection) == 0) return;
  MutexLock lock(shared->mutex);
  --shared->connections;
  shared->closed.notify_all();
}

void HttpLoop::drain() {
  is_draining = true;
  for (const auto& connection : all()) connection->close_if_idle();
}

void HttpLoop::close_all() {
  for (const auto& connection : all()) connection->close();
}

bool HttpLoop::close_longest_idle() {
  std::shared_ptr<HttpConnection> idlest;
  for (const auto& [raw, connection] : connections) {
    if (raw->idle_until() && (!idlest || *raw->idle_until() < *idlest->idle_until())) idlest = connection;
  }
  if (idlest) idlest->close();
  return idlest != nullptr;
}

std::vector<std::shared_ptr<HttpConnection>> HttpLoop::all() const {
  std::vector<std::shared_ptr<HttpConnection>> copy;
  copy.reserve(connections.size());
  for (const auto& [raw, connection] : connections) copy.push_back(connection);
  return copy;
}

struct HttpServer::Impl {
  Impl(HttpApp& app, HttpServerConfig c)
      : config(std::move(c)), shared(std::make_shared<HttpShared>(app, config.limits)) {
    for (int i = 0; i < std::max(config.threads, 1); ++i) loops.push_back(std::make_shared<HttpLoop>(shared));
  }

  void accept();
  void add_connection(HttpLoop* loop, tcp::socket socket);

  HttpServerConfig config;
  std::shared_ptr<HttpShared> shared;
  std::vector<std::shared_ptr<HttpLoop>> loops;
  std::vector<std::thread> threads;
  std::optional<tcp::acceptor> acceptor;           // on the first loop
  std::optional<asio::steady_timer> accept_pause;  // on the first loop
  std::size_t next_loop = 0;
  int port = 0;
};

void HttpServer::Impl::accept() {
  // Handlers hold loops by pointer: one that owned the loop it waits in would keep it for ever.
  HttpLoop* loop = loops[next_loop++ % loops.size()].get();
  acceptor->async_accept(loop->loop, [this, loop](error_code error, tcp::socket socket) {
    if (!acceptor->is_open()) return;
    if (error) {
      accept_pause->expires_after(kAcceptPause);
      accept_pause->async_wait([this](error_code) {
        if (acceptor->is_open()) accept();
      });
      return;
    }
    add_connection(loop, std::move(socket));
    accept();
  });
}

void HttpServer::Impl::add_connection(HttpLoop* loop, tcp::socket socket) {
  std::size_t count = 0;
  {
    MutexLock lock(shared->mutex);
    if (shared->connections >= config.limits.connections + kRefusedConnections) return;
    count = ++shared->connections;
  }
  asio::dispatch(loop->loop, [this, loop, count, s = std::move(socket)]() mutable {
    const auto connection = std::make_shared<HttpConnection>(loop->shared_from_this(), std::move(s));
    const bool is_over = count > config.limits.connections && !loop->close_longest_idle();
    loop->add(connection);
    if (is_over)
      connection->refuse({503, "Too many connections.", "", 1});
    else
      connection->start();
  });
}

HttpServer::HttpServer(HttpApp& app, HttpServerConfig config) : impl_(std::make_unique<Impl>(app, std::move(config))) {}

HttpServer::~HttpServer() { stop(milliseconds(0)); }

Status HttpServer::bind() {
  const HttpServerConfig& config = impl_->config;
  error_code error;
  tcp::resolver resolver(impl_->loops[0]->loop);
  const bool is_bracketed = config.host.starts_with('[') && config.host.ends_with(']');  // "[::1]"
  const std::string host = is_bracketed ? config.host.substr(1, config.host.size() - 2) : config.host;
  const auto found = resolver.resolve(host, std::to_string(config.port), tcp::resolver::passive, error);
  if (error || found.empty())
    return Error{ErrorCode::invalid, "cannot resolve " + config.host + ": " + error.message(), "listen"};
  const tcp::endpoint endpoint = found.begin()->endpoint();
  impl_->acceptor.emplace(impl_->loops[0]->loop);
  impl_->accept_pause.emplace(impl_->loops[0]->loop);
  tcp::acceptor& acceptor = *impl_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    impl_->acceptor.reset();
    return Error{ErrorCode::invalid,
                 "cannot listen on " + config.host + ":" + std::to_string(config.port) + ": " + error.message(),
                 "listen"};
  }
  impl_->port = acceptor.local_endpoint().port();
  return Unit{};
}

Status HttpServer::start() {
  if (!impl_->acceptor)
    if (auto done = bind(); !done) return done;
  impl_->accept();
  for (const auto& loop : impl_->loops) {
    impl_->threads.emplace_back([loop] { run_or_abort("http server", [&] { loop->loop.run(); }); });
  }
  return Unit{};
}

int HttpServer::port() const { return impl_->port; }

void HttpServer::stop(milliseconds grace) {
  if (impl_->threads.empty()) return;
  asio::post(impl_->loops[0]->loop, [impl = impl_.get()] {
    error_code ignored;
    impl->acceptor->close(ignored);
    impl->accept_pause->cancel();
  });
  for (const auto& loop : impl_->loops) asio::post(loop->loop, [loop = loop.get()] { loop->drain(); });
  {
    HttpShared& shared = *impl_->shared;
    MutexLock lock(shared.mutex);
    const auto end = std::chrono::steady_clock::now() + grace;
    while (shared.connections > 0 && shared.closed.wait_until(shared.mutex, end)) {
    }
  }
  for (const auto& loop : impl_->loops) loop->loop.stop();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
  impl_->acceptor.reset();
  impl_->accept_pause.reset();
  for (const auto& loop : impl_->loops) loop->close_all();
}

}  // namespace tocsin
