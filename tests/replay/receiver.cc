#include "replay/receiver.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

namespace tocsin::replay {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

template <class Number>
Number number(const beast::string_view text) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

struct Receiver::Server {
  explicit Server(Receiver& owner) : receiver(owner) {}

  asio::awaitable<void> accept() {
    for (;;) {
      tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
      socket.set_option(tcp::no_delay(true));
      asio::co_spawn(loop, serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    beast::flat_buffer buffer;
    try {
      for (;;) {
        http::request<http::string_body> request;
        co_await http::async_read(socket, buffer, request, asio::use_awaitable);
        const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
        http::response<http::empty_body> response(
            write_down(request, now) ? http::status::ok : http::status::bad_request, 11);
        response.keep_alive(request.keep_alive());
        response.prepare_payload();
        co_await http::async_write(socket, response, asio::use_awaitable);
        if (!response.keep_alive()) break;
      }
    } catch (const boost::system::system_error&) {  // the node closed its connection
    }
  }

  bool write_down(const http::request<http::string_body>& request,
                  std::chrono::sys_time<std::chrono::microseconds> now) {
    const auto body = nlohmann::json::parse(request.body(), nullptr, /*allow_exceptions=*/false);
    const auto data = body.is_object() ? body.find("data") : body.end();
    if (data == body.end() || !data->is_object() || !data->contains("biz_id") || !(*data)["biz_id"].is_string()) {
      std::cerr << "a delivery without data.biz_id: " << request.body() << '\n';
      return false;
    }
    receiver.add({(*data)["biz_id"].get<std::string>(), number<std::int64_t>(request["webhook-id"]),
                  number<int>(request["tocsin-attempt"]), now});
    return true;
  }

  Receiver& receiver;
  asio::io_context loop{1};
  tcp::acceptor acceptor{loop, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
};

Receiver::Receiver() : server_(std::make_unique<Server>(*this)) {
  asio::co_spawn(server_->loop, server_->accept(), asio::detached);
  thread_ = std::thread([this] { server_->loop.run(); });
}

Receiver::~Receiver() {
  server_->loop.stop();
  thread_.join();
}

std::string Receiver::url() const {
  return "http://127.0.0.1:" + std::to_string(server_->acceptor.local_endpoint().port()) + "/fired";
}

std::vector<Delivery> Receiver::deliveries() const {
  const std::scoped_lock lock(mutex_);
  return deliveries_;
}

void Receiver::add(Delivery delivery) {
  const std::scoped_lock lock(mutex_);
  deliveries_.push_back(std::move(delivery));
  ++count_;
}

}  // namespace tocsin::replay
