// SenderLoop: one thread of HttpSender (http_sender.h), which owns it. It has the origins (scheme://host:port) assigned
// to this thread, their connections, and the requests that wait for a connection.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "delivery/outbound_exchange.h"
#include "delivery/resolver.h"

namespace tocsin {

// An exchange is one request with its state and its answer. The data members are what the exchanges of one loop share.
// Thread: send, call_at, add_to any; constructor, start, stop and destructor owner only; private functions the loop's
// own thread (without start(): the thread that calls stop()).
class SenderLoop {
 public:
  // REQUIRES: `options` and `clock` outlive the loop.
  SenderLoop(const HttpSenderOptions& options, const Clock& clock, std::shared_ptr<Resolver> resolver);

  Status start();  // Error invalid: ca_file cannot be loaded
  // Ends the thread; all exchanges fail. REQUIRES: called before the destructor.
  void stop();
  // `done` is called once, on the loop's thread; after stop() at once, on the caller's.
  void send(OutboundRequest request, HttpSender::Done done);
  void call_at(MonoTime time, std::function<void()> call);  // on the loop's thread; dropped by stop()
  void add_to(HttpSenderStats& stats) const;                // adds its own numbers

 private:
  using ExchangePtr = std::shared_ptr<OutboundExchange>;
  using ConnectionPtr = std::unique_ptr<OutboundConnection>;
  using Addresses = Resolver::Addresses;
  using error_code = boost::system::error_code;
  template <class T>
  using awaitable = boost::asio::awaitable<T>;

  // One request to the resolver, and the exchanges that wait for its answer.
  struct Lookup {
    bool is_done = false;
    error_code ec;
    Addresses addresses;
    std::vector<ExchangePtr> waiting;
  };

  struct Origin {
    std::unordered_set<ExchangePtr> active;  // at most max_connections
    std::deque<ExchangePtr> waiting;         // in order, until an active one ends
    std::vector<ConnectionPtr> idle;         // the one used last is at the back
    std::shared_ptr<Lookup> lookup;          // the latest; exchanges share it until it is done

    // While a lookup runs, its origin is kept. Otherwise the next exchange would start a second lookup of the same
    // name, and a name whose lookups hang would occupy all threads of the resolver.
    bool is_unused() const { return active.empty() && waiting.empty() && idle.empty() && (!lookup || lookup->is_done); }
  };

  void accept(const ExchangePtr& exchange);                 // begins it, or queues it at its origin
  void begin(Origin& origin, const ExchangePtr& exchange);  // its turn has come: runs it, unless may_begin refuses
  void end(Origin& origin, const ExchangePtr& exchange);    // removes it, and begins those that waited
  // Interrupts the exchange after `timeout` or at its deadline, whichever is earlier.
  void arm(const ExchangePtr& exchange, Duration timeout);
  void interrupt_all();  // for stop()
  void sweep_later();    // closes expired idle connections each second, as long as there are origins

  awaitable<void> run(Origin& origin, ExchangePtr exchange);
  ConnectionPtr take_idle(Origin& origin);  // null: none can be reused
  // Resolves the name and connects exchange->connection. On an error the exchange may have failed already.
  awaitable<error_code> open(Origin& origin, const ExchangePtr& exchange);
  awaitable<error_code> resolve(Origin& origin, const ExchangePtr& exchange, Addresses& addresses);
  void start_lookup(const std::shared_ptr<Lookup>& lookup, const std::string& host);

  const HttpSenderOptions& options_;
  const Clock& clock_;
  const std::shared_ptr<Resolver> resolver_;
  // Shared: a resolver thread that is stuck posts its answer after the loop has gone.
  const std::shared_ptr<boost::asio::io_context> io_ = std::make_shared<boost::asio::io_context>(1);
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{io_->get_executor()};
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_client};
  boost::asio::steady_timer sweep_timer_{*io_};
  std::unordered_map<std::string, Origin> origins_;
  std::unordered_set<std::shared_ptr<boost::asio::steady_timer>> calls_;  // timers of call_at()
  bool is_stopping_ = false;
  bool is_sweeping_ = false;

  std::atomic<std::int64_t> in_flight_{0}, waiting_{0}, connects_{0}, requests_{0};

  Mutex mutex_;  // orders each send() and call_at() before or after stop()
  bool is_closed_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tocsin
