#include "support/webhook_receiver.h"

#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tocsin {

struct WebhookReceiver::Server {
  httplib::Server http;
  std::thread thread;
  int port = 0;
  mutable std::mutex mutex;
  std::condition_variable released;
  bool is_holding = false;
  int status = 200;
  std::vector<Delivery> deliveries;
  std::size_t now_here = 0, most_at_once = 0;

  void take(const httplib::Request& request, httplib::Response& response) {
    Delivery delivery;
    for (const auto& [name, value] : request.headers) {
      std::string lower = name;
      std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      delivery.headers[lower] = value;
    }
    delivery.body = Json::parse(request.body, nullptr, false);
    delivery.text = request.body;
    std::unique_lock lock(mutex);
    deliveries.push_back(std::move(delivery));
    most_at_once = std::max(most_at_once, ++now_here);
    released.wait(lock, [this] { return !is_holding; });
    --now_here;
    response.status = status;
  }
};

WebhookReceiver::WebhookReceiver() : server_(std::make_unique<Server>()) {
  Server& server = *server_;
  // A connection occupies a thread as long as the node keeps it open.
  server.http.new_task_queue = [] { return new httplib::ThreadPool(64); };
  server.http.set_tcp_nodelay(true);
  server.http.Post(".*", [&server](const httplib::Request& request, httplib::Response& response) {
    server.take(request, response);
  });
  server.port = server.http.bind_to_any_port("127.0.0.1");
  server.thread = std::thread([&server] { server.http.listen_after_bind(); });
}

WebhookReceiver::~WebhookReceiver() {
  release();
  // A server that is stopped before it listens would listen for ever.
  while (!server_->http.is_running()) std::this_thread::yield();
  server_->http.stop();
  server_->thread.join();
}

std::string WebhookReceiver::url() const { return "http://127.0.0.1:" + std::to_string(server_->port) + "/hook"; }

void WebhookReceiver::answer(int status) {
  std::lock_guard lock(server_->mutex);
  server_->status = status;
}

void WebhookReceiver::hold() {
  std::lock_guard lock(server_->mutex);
  server_->is_holding = true;
}

void WebhookReceiver::release() {
  {
    std::lock_guard lock(server_->mutex);
    server_->is_holding = false;
  }
  server_->released.notify_all();
}

std::size_t WebhookReceiver::most_at_once() const {
  std::lock_guard lock(server_->mutex);
  return server_->most_at_once;
}

std::vector<Delivery> WebhookReceiver::deliveries() const {
  std::lock_guard lock(server_->mutex);
  return server_->deliveries;
}

}  // namespace tocsin
