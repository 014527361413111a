// The REST interface of a node: routes, gate and server in one.
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
  Tokens tokens;  // none: everything is allowed; bind to loopback only then (is_loopback)
  std::size_t max_attribute_bytes = 65536;
  std::string version = "0";
  bool has_dashboard = true;                                            // GET / and /assets/
  std::function<void(const std::string& route, int status)> on_answer;  // thread: any of the server's
};

// Thread: owner only.
class Api {
 public:
  // REQUIRES: `backend` outlives the Api, and drops its callbacks before the Api is destroyed.
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
