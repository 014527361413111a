#include "bench/http_load.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "cli/rest_client.h"

namespace tocsin::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(30);
constexpr std::uint64_t kLargestAnswer = 64 << 20;

class Generator {
 public:
  explicit Generator(const Load& load) : load_(load), watch_(loop_) {}

  LoadReport run() {
    for (int i = 0; i < load_.connections; ++i) {
      lanes_.push_back(std::make_unique<Lane>(loop_));
      lanes_.back()->socket.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(load_.port)});
      lanes_.back()->socket.set_option(tcp::no_delay(true));
    }
    const auto start = SteadyClock::now();
    for (const auto& lane : lanes_) send(*lane);
    if (in_flight_ == 0) return std::move(report_);  // nothing to ask
    watch();
    loop_.run();
    report_.seconds = std::chrono::duration<double>(last_answer_ - start).count();
    std::sort(report_.latency_ms.begin(), report_.latency_ms.end());
    return std::move(report_);
  }

 private:
  struct Lane {
    explicit Lane(asio::io_context& loop) : socket(loop) {}
    tcp::socket socket;
    boost::beast::flat_buffer buffer;
    std::string request;
    std::optional<http::response_parser<http::string_body>> answer;
    std::int64_t number = 0;
    SteadyClock::time_point sent;
  };

  void send(Lane& lane) {
    if (is_over_ || !load_.next(next_, lane.request)) {
      is_over_ = true;
      if (in_flight_ == 0) watch_.cancel();
      return;
    }
    ++in_flight_;
    lane.number = next_++;
    lane.sent = SteadyClock::now();
    asio::async_write(lane.socket, asio::buffer(lane.request), [this, &lane](error_code error, std::size_t) {
      if (error) throw Failure("a request could not be sent: " + error.message());
      receive(lane);
    });
  }

  void receive(Lane& lane) {
    lane.answer.emplace();
    lane.answer->body_limit(kLargestAnswer);
    http::async_read(lane.socket, lane.buffer, *lane.answer, [this, &lane](error_code error, std::size_t) {
      if (error) throw Failure("no answer: " + error.message());
      --in_flight_;
      note(lane);
      send(lane);
    });
  }

  void note(const Lane& lane) {
    last_answer_ = SteadyClock::now();
    const auto& answer = lane.answer->get();
    if (answer.result_int() != static_cast<unsigned>(load_.expected_status)) {
      if (report_.unexpected++ == 0)
        report_.first_unexpected = std::to_string(answer.result_int()) + " " + answer.body().substr(0, 200);
      return;
    }
    ++report_.answered;
    report_.latency_ms.push_back(std::chrono::duration<double, std::milli>(last_answer_ - lane.sent).count());
    if (load_.on_answer) load_.on_answer(lane.number, answer.body());
  }

  void watch() {
    const std::int64_t seen = report_.answered + report_.unexpected;
    watch_.expires_after(kPatience);
    watch_.async_wait([this, seen](error_code error) {
      if (error || (is_over_ && in_flight_ == 0)) return;
      if (report_.answered + report_.unexpected == seen) throw Failure("nothing was answered for 30 s");
      watch();
    });
  }

  const Load& load_;
  asio::io_context loop_{1};
  asio::steady_timer watch_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::int64_t next_ = 0;
  int in_flight_ = 0;
  bool is_over_ = false;
  SteadyClock::time_point last_answer_;
  LoadReport report_;
};

}  // namespace

std::string request_text(const std::string& method, const std::string& path, const std::string& body) {
  std::string text = method + " " + path + " HTTP/1.1\r\nhost: 127.0.0.1\r\n";
  if (method != "GET")
    text += "content-type: application/json\r\ncontent-length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

LoadReport run_load(const Load& load) {
  try {
    return Generator(load).run();
  } catch (const boost::system::system_error& error) {
    throw Failure(std::string("the node cannot be reached: ") + error.what());
  }
}

LoadReport run_strict_load(const Load& load) {
  LoadReport report = run_load(load);
  if (report.unexpected > 0)
    throw Failure(std::to_string(report.unexpected) + " requests failed, the first with " + report.first_unexpected);
  return report;
}

}  // namespace tocsin::bench
