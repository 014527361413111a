// Api: the REST interface of a node: routes, authentication, dashboard and HTTP server in one. Owned by the node
// (node/node_impl.h), which starts it when the node can take requests, and stops it before its databases.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/auth.h"
#include "api/backend.h"
#include "api/http_server.h"

namespace tocsin {

class Router;

struct ApiConfig {
  HttpServerConfig http;
  // Empty: callers need no token and have the role admin. Then http.host must be a loopback address (is_loopback(),
  // auth.h).
  Tokens tokens;
  std::size_t max_attribute_bytes = 65536;  // of a job's attribute as JSON text; a longer one: 400
  std::string version = "0";                // of the program; shown in GET /openapi.json
  bool has_dashboard = true;                // serve GET / and /assets/
  // Called on a network thread for every answer, for the metrics. `route`: see Admission::route (http.h).
  std::function<void(const std::string& route, int status)> on_answer;
};

// Used once: bind(), start(), stop(). Thread: owner only (the thread that starts and stops the node).
class Api {
 public:
  // REQUIRES: `backend` outlives the Api, and calls no callback (`done`) after the Api is destroyed.
  Api(Backend& backend, ApiConfig config);
  ~Api();  // stop(0)
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Binds the address and listens: clients can connect, and wait for an answer until start(). Error invalid, field
  // "listen": the address is wrong, in use or not permitted.
  Status bind();
  // Starts the network threads, which answer requests from now on. Calls bind() first if that was not done, with its
  // errors.
  Status start();
  // The port that bind() took. REQUIRES: bound.
  int port() const;
  // Accepts no more connections, waits up to `grace` until the requests in flight are answered, then closes all
  // connections. Handlers are not called after that. Without start() it does nothing; the destructor releases an
  // address that was only bound.
  void stop(std::chrono::milliseconds grace);

  // For tests, which call Router::admit() without a socket.
  Router& router();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin
