// HttpServerTest: a test fixture with a running HttpServer (src/api/http_server.h), an app that echoes requests
// (EchoApp), and a client that sends exactly the bytes it is given (RawClient).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "api/http_server.h"
#include "api/problem.h"

namespace tocsin {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;

// Answers "METHOD target body". Requests for /later wait until the test answers them: next_waiting(). Those for
// /large/later are kept whole, as a queue does, until next_request() takes them.
class EchoApp : public HttpApp {
 public:
  Admission admit(const HttpRequest& head) override {
    Admission admission;
    if (head.target == "/refused") admission.refusal = problem_response({401, "no"});
    admission.body_limit = 1000;
    if (head.target.starts_with("/large")) admission.body_limit = 64 << 20;
    if (head.target == "/later?long") admission.reply_timeout = std::chrono::seconds(20);
    admission.run = [this](HttpRequest request, Responder respond) {
      std::string text = request.method + ' ' + request.target + ' ' + request.body;
      if (request.target == "/large") text = std::to_string(request.body.size());
      if (request.target == "/host") text = request.host;
      if (request.target == "/big") text = std::string(1 << 20, 'x');
      if (request.target == "/shared") {
        HttpResponse response{200, "text/plain", "", {}};
        response.shared_body = shared_body;
        return respond(std::move(response));
      }
      if (request.target == "/large/later") {
        const std::lock_guard lock(mutex_);
        queued_.emplace_back(std::move(request), std::move(respond));
        return arrived_.notify_all();
      }
      if (!request.target.starts_with("/later")) return respond({200, "text/plain", text, {}});
      const std::lock_guard lock(mutex_);
      waiting_.push_back(respond);
      arrived_.notify_all();
    };
    return admission;
  }

  std::pair<HttpRequest, Responder> next_request() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !queued_.empty(); });
    auto first = std::move(queued_.front());
    queued_.erase(queued_.begin());
    return first;
  }

  std::shared_ptr<const SharedBody> shared_body;  // of the answers to /shared

  Responder next_waiting() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !waiting_.empty(); });
    Responder first = waiting_.front();
    waiting_.erase(waiting_.begin());
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Responder> waiting_;
  std::vector<std::pair<HttpRequest, Responder>> queued_;
};

// A connection to the server; every call blocks.
class RawClient {
 public:
  explicit RawClient(int port) {
    socket_.connect({asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(port)});
  }

  // False: the server has closed the connection.
  bool send(std::string_view bytes) {
    boost::system::error_code error;
    asio::write(socket_, asio::buffer(bytes), error);
    return !error;
  }

  // One response, by its Content-Length; "" if the connection ends first. `has_body`: false for the answer to HEAD.
  std::string response(bool has_body = true) {
    const std::size_t head = read_until("\r\n\r\n");
    if (head == std::string::npos) return "";
    std::size_t length = 0;
    if (const auto at = received_.find("Content-Length: "); has_body && at < head)
      length = std::stoul(received_.substr(at + 16));
    while (received_.size() < head + 4 + length) {
      if (!read_some()) return "";
    }
    const std::string whole = received_.substr(0, head + 4 + length);
    received_.erase(0, whole.size());
    return whole;
  }

  int status() {
    const std::string text = response();
    return text.size() > 12 ? std::stoi(text.substr(9, 3)) : 0;
  }

  bool has_answer() { return socket_.available() > 0; }

  // Everything until the server closes the connection.
  std::string rest() {
    while (read_some()) {
    }
    return std::exchange(received_, "");
  }

  void close() { socket_.close(); }
  void finish_sending() {
    boost::system::error_code gone;  // the server may have closed it
    socket_.shutdown(tcp::socket::shutdown_send, gone);
  }

 private:
  bool read_some() {
    std::array<char, 65536> chunk;
    boost::system::error_code error;
    const std::size_t n = socket_.read_some(asio::buffer(chunk), error);
    received_.append(chunk.data(), n);
    return !error;
  }
  std::size_t read_until(const char* mark) {
    std::size_t at = received_.find(mark);
    while (at == std::string::npos) {
      if (!read_some()) return at;
      at = received_.find(mark);
    }
    return at;
  }

  asio::io_context context_;
  tcp::socket socket_{context_};
  std::string received_;
};

class HttpServerTest : public testing::Test {
 public:
  void start(const std::function<void(HttpServerConfig&)>& change = [](HttpServerConfig&) {}) {
    HttpServerConfig config;
    config.limits.linger_time = milliseconds(500);
    change(config);
    server = std::make_unique<HttpServer>(app, config);
    const Status status = server->start();
    ASSERT_TRUE(status) << status.error().message;
  }
  RawClient client() const { return RawClient(server->port()); }

  // Sends one request on a new connection. Returns its status, and whether the server closed the connection after it.
  std::pair<int, bool> once(const std::string& request) {
    RawClient c = client();
    c.send(request);
    const int status = c.status();
    c.send("GET /again HTTP/1.1\r\nHost: x\r\n\r\n");
    return {status, c.status() == 0};
  }

  EchoApp app;
  std::unique_ptr<HttpServer> server;
};

inline const std::string kGet = "GET /x HTTP/1.1\r\nHost: x\r\n\r\n";

}  // namespace tocsin
