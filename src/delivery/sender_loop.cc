#include "delivery/sender_loop.h"

#include <algorithm>
#include <boost/asio.hpp>

#include "base/assert.h"
#include "base/thread_guard.h"

namespace tocsin {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using asio::ip::tcp;

constexpr Duration kSweepInterval = std::chrono::seconds(1);

// Completion token: the error goes to `ec` instead of an exception.
auto with_error(boost::system::error_code& ec) { return asio::redirect_error(asio::use_awaitable, ec); }

}  // namespace

SenderLoop::SenderLoop(const HttpSenderOptions& options, const Clock& clock, std::shared_ptr<Resolver> resolver)
    : options_(options), clock_(clock), resolver_(std::move(resolver)) {}

Status SenderLoop::start() {
  error_code ec;
  tls_.set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  tls_.set_verify_mode(ssl::verify_peer);
  tls_.set_default_verify_paths(ec);
  if (!options_.ca_file.empty()) {
    tls_.load_verify_file(options_.ca_file, ec);
    if (ec) return Error{ErrorCode::invalid, options_.ca_file + ": " + ec.message(), {}};
  }
  thread_ = std::thread([this] { run_or_abort("http sender", [this] { io_->run(); }); });
  return Unit{};
}

void SenderLoop::stop() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
  }
  asio::post(*io_, [this] { interrupt_all(); });
  guard_.reset();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    io_->run();
  }
}

void SenderLoop::send(OutboundRequest request, HttpSender::Done done) {
  auto exchange = std::make_shared<OutboundExchange>(*io_, std::move(request), std::move(done));
  {
    MutexLock lock(mutex_);
    if (!is_closed_) {
      asio::post(*io_, [this, exchange] { accept(exchange); });
      return;
    }
  }
  exchange->fail("shutting down");
}

void SenderLoop::call_at(MonoTime time, std::function<void()> call) {
  MutexLock lock(mutex_);
  if (is_closed_) return;
  asio::post(*io_, [this, time, call = std::move(call)]() mutable {
    if (is_stopping_) return;
    auto timer = std::make_shared<asio::steady_timer>(*io_, std::max(time - clock_.now(), Duration{0}));
    calls_.insert(timer);
    timer->async_wait([this, timer, call = std::move(call)](const error_code& ec) {
      calls_.erase(timer);
      if (!ec && !is_stopping_) call();
    });
  });
}

void SenderLoop::add_to(HttpSenderStats& stats) const {
  stats.in_flight += in_flight_;
  stats.waiting += waiting_;
  stats.requests += requests_;
  stats.connects += connects_;
}

void SenderLoop::accept(const ExchangePtr& exchange) {
  if (!is_sweeping_) sweep_later();
  Origin& origin = origins_[exchange->request.target.origin];
  if (origin.active.size() < static_cast<std::size_t>(options_.max_connections)) return begin(origin, exchange);
  origin.waiting.push_back(exchange);
  ++waiting_;
  arm(exchange, exchange->request.start_by - clock_.now());
}

void SenderLoop::begin(Origin& origin, const ExchangePtr& exchange) {
  if (exchange->request.may_begin && !exchange->request.may_begin()) {
    exchange->timer.cancel();
    return exchange->fail("not to be called now");
  }
  exchange->has_begun = true;
  origin.active.insert(exchange);
  ++in_flight_;
  arm(exchange, exchange->request.timeout);
  asio::co_spawn(*io_, run(origin, exchange), [this, &origin, exchange](std::exception_ptr failure) {
    if (failure) exchange->fail(std::string(exchange->phase) + ": internal error");
    end(origin, exchange);
  });
}

void SenderLoop::end(Origin& origin, const ExchangePtr& exchange) {
  TOCSIN_ASSERT(!exchange->done);
  exchange->timer.cancel();
  origin.active.erase(exchange);
  --in_flight_;
  while (!origin.waiting.empty() && origin.active.size() < static_cast<std::size_t>(options_.max_connections)) {
    const ExchangePtr next = std::move(origin.waiting.front());
    origin.waiting.pop_front();
    --waiting_;
    begin(origin, next);
  }
}

void SenderLoop::arm(const ExchangePtr& exchange, Duration timeout) {
  const Duration left = std::min(timeout, exchange->request.deadline - clock_.now());
  exchange->timer.expires_after(std::max(left, Duration{0}));
  exchange->timer.async_wait([this, exchange](const error_code& ec) {
    if (ec || exchange->timer.expiry() > std::chrono::steady_clock::now()) return;  // cancelled, or armed again
    exchange->interrupt(std::string("timed out while ") + exchange->phase);
    if (std::erase(origins_[exchange->request.target.origin].waiting, exchange) == 0) return;
    --waiting_;
    exchange->fail(exchange->interruption);
  });
}

void SenderLoop::interrupt_all() {
  is_stopping_ = true;
  sweep_timer_.cancel();
  for (const auto& timer : calls_) timer->cancel();
  for (auto& [name, origin] : origins_) {
    for (const ExchangePtr& exchange : std::exchange(origin.waiting, {})) {
      exchange->timer.cancel();
      --waiting_;
      exchange->fail("shutting down");
    }
    for (const ExchangePtr& exchange : origin.active) exchange->interrupt("shutting down");
    origin.idle.clear();
  }
}

void SenderLoop::sweep_later() {
  is_sweeping_ = true;
  sweep_timer_.expires_after(std::min(kSweepInterval, options_.idle_timeout));
  sweep_timer_.async_wait([this](const error_code& ec) {
    if (ec || is_stopping_) return;
    const MonoTime idle_before = clock_.now() - options_.idle_timeout;
    for (auto it = origins_.begin(); it != origins_.end();) {
      std::erase_if(it->second.idle, [&](const auto& connection) { return connection->idle_since <= idle_before; });
      it = it->second.is_unused() ? origins_.erase(it) : std::next(it);
    }
    is_sweeping_ = false;
    if (!origins_.empty()) sweep_later();
  });
}

asio::awaitable<void> SenderLoop::run(Origin& origin, ExchangePtr exchange) {
  ConnectionPtr connection = take_idle(origin);
  const bool is_kept = connection != nullptr;
  if (!is_kept) connection = std::make_unique<OutboundConnection>(*io_, tls_, exchange->request.target.is_https);
  exchange->connection = connection.get();

  error_code ec;
  if (!is_kept && exchange->interruption.empty()) ec = co_await open(origin, exchange);
  bool can_be_kept = false;
  if (ec || !exchange->interruption.empty()) {
    exchange->fail(ec);
  } else {
    can_be_kept = co_await post_request(*exchange, clock_);
    requests_ += exchange->is_sent;
  }
  exchange->connection = nullptr;
  if (!can_be_kept || is_stopping_) co_return;
  connection->idle_since = clock_.now();
  origin.idle.push_back(std::move(connection));
}

SenderLoop::ConnectionPtr SenderLoop::take_idle(Origin& origin) {
  while (!origin.idle.empty()) {
    ConnectionPtr connection = std::move(origin.idle.back());
    origin.idle.pop_back();
    if (connection->is_fresh()) return connection;
  }
  return nullptr;
}

// Connects to the addresses that the guard checked: a name that resolves to others a moment later gains nothing.
asio::awaitable<SenderLoop::error_code> SenderLoop::open(Origin& origin, const ExchangePtr& exchange) {
  exchange->phase = "resolving the name";
  Addresses addresses;
  error_code ec = co_await resolve(origin, exchange, addresses);
  if (ec || !exchange->interruption.empty()) co_return ec;
  std::erase_if(addresses, [this](const auto& address) { return !options_.guard.allows(address); });
  if (addresses.empty()) {
    exchange->fail("refused: it is at no address that webhooks may call (see --allow-webhook)", ErrorCode::invalid);
    co_return asio::error::access_denied;
  }

  exchange->phase = "connecting";
  ++connects_;
  std::vector<tcp::endpoint> endpoints;
  for (const auto& address : addresses) endpoints.emplace_back(address, exchange->request.target.port);
  tcp::socket& socket = exchange->connection->socket;
  co_await asio::async_connect(socket, endpoints, with_error(ec));
  if (ec) co_return ec;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  if (exchange->connection->tls) ec = co_await negotiate_tls(*exchange);
  co_return ec;
}

asio::awaitable<SenderLoop::error_code> SenderLoop::resolve(Origin& origin, const ExchangePtr& exchange,
                                                            Addresses& addresses) {
  const HttpTarget& target = exchange->request.target;
  error_code ec;
  if (const auto address = asio::ip::make_address(target.host, ec); !ec) {
    addresses.push_back(address);
    co_return error_code{};
  }
  if (!origin.lookup || origin.lookup->is_done) {
    origin.lookup = std::make_shared<Lookup>();
    start_lookup(origin.lookup, target.host);
  }
  const std::shared_ptr<Lookup> lookup = origin.lookup;
  lookup->waiting.push_back(exchange);
  exchange->lookup_wait.expires_at(asio::steady_timer::time_point::max());
  error_code cancelled;
  if (!lookup->is_done) co_await exchange->lookup_wait.async_wait(with_error(cancelled));
  std::erase(lookup->waiting, exchange);  // interrupted: a lookup may last longer than many exchanges
  addresses = lookup->addresses;
  co_return lookup->ec;
}

void SenderLoop::start_lookup(const std::shared_ptr<Lookup>& lookup, const std::string& host) {
  resolver_->resolve(host, [io = io_, lookup](const error_code& ec, Addresses addresses) {
    asio::post(*io, [lookup, ec, addresses = std::move(addresses)] {
      lookup->is_done = true;
      lookup->ec = ec;
      lookup->addresses = addresses;
      for (const ExchangePtr& exchange : std::exchange(lookup->waiting, {})) exchange->lookup_wait.cancel();
    });
  });
}

}  // namespace tocsin
