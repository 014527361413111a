#include "bench_core/receiver.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <utility>

namespace tocsin::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

}  // namespace

struct Receiver::Server {
  Server(OnRequest what, std::chrono::milliseconds answer_delay) : on_request(std::move(what)), delay(answer_delay) {
    asio::co_spawn(loop, accept(), asio::detached);
  }

  asio::awaitable<void> accept() {
    for (;;) {
      tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
      socket.set_option(tcp::no_delay(true));
      asio::co_spawn(loop, serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    boost::beast::flat_buffer buffer;
    try {
      for (;;) {
        http::request<http::string_body> request;
        co_await http::async_read(socket, buffer, request, asio::use_awaitable);
        const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
        const bool is_kept = request.keep_alive();
        const std::string job(request["webhook-id"]), attempt(request["tocsin-attempt"]);
        const bool is_taken = on_request({now, std::move(request.body()), job, attempt});
        if (delay.count() > 0) {
          asio::steady_timer timer(loop, delay);
          co_await timer.async_wait(asio::use_awaitable);
        }
        http::response<http::empty_body> response(is_taken ? http::status::ok : http::status::bad_request, 11);
        response.keep_alive(is_kept);
        response.prepare_payload();
        co_await http::async_write(socket, response, asio::use_awaitable);
        if (!is_kept) break;
      }
    } catch (const boost::system::system_error&) {  // the node closed its connection
    }
  }

  const OnRequest on_request;
  const std::chrono::milliseconds delay;
  asio::io_context loop{1};
  tcp::acceptor acceptor{loop, tcp::endpoint(asio::ip::address_v4::any(), 0)};
};

Receiver::Receiver(OnRequest on_request, std::chrono::milliseconds delay)
    : server_(std::make_unique<Server>(std::move(on_request), delay)), thread_([this] { server_->loop.run(); }) {}

Receiver::~Receiver() { stop(); }

int Receiver::port() const { return server_->acceptor.local_endpoint().port(); }

std::string Receiver::url() const { return "http://127.0.0.1:" + std::to_string(port()) + "/fire"; }

std::string Receiver::url_of(int n) const {
  return "http://127.1." + std::to_string(n / 250) + "." + std::to_string(n % 250 + 1) + ":" + std::to_string(port()) +
         "/fire";
}

void Receiver::stop() {
  if (!thread_.joinable()) return;
  server_->loop.stop();
  thread_.join();
}

}  // namespace tocsin::bench
