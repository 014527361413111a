// The REST interface of a node: routes, authentication, dashboard and HTTP server in one.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/auth.h"
#include "api/backend.h"
#include "api/http_server.h"

namespace tocsin {

class Router;

struct ApiConfig {
  HttpServerConfig http;
  Tokens tokens;  // none: callers on this machine may do everything; the caller must check that the host is_loopback()
  std::size_t max_attribute_bytes = 65536;
  std::string version = "0";
  bool has_dashboard = true;                                            // GET / and /assets/
  std::function<void(const std::string& route, int status)> on_answer;  // for the metrics; on a network thread
};

// Thread: owner only.
class Api {
 public:
  // REQUIRES: `backend` outlives the Api, and calls no callback (`done`) after the Api is destroyed.
  Api(Backend& backend, ApiConfig config);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Binds the address; requests are answered from start() on. Error invalid: the address cannot be bound.
  Status bind();
  // Answers; binds first where bind() was not called.
  Status start();
  // REQUIRES: bound.
  int port() const;
  // Accepts no more connections, waits up to `grace` for requests in flight to be answered, then closes all
  // connections.
  void stop(std::chrono::milliseconds grace);

  // For tests: dispatch without a socket.
  Router& router();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin
