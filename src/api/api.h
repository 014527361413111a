// Api: the REST interface of a node: routes, authentication, dashboard and HTTP server in one. The node makes one,
// starts it when it can take requests, and stops it before its databases.
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
  Tokens tokens;  // empty: every admitted request is that of an admin. REQUIRES then: is_loopback(http.host) (auth.h)
  std::size_t max_attribute_bytes = 65536;  // of a job's attribute, as JSON text; over it: 400
  std::string version = "0";                // of the program; shown in GET /openapi.json
  bool has_dashboard = true;                // serve GET / and /assets/
  // For the metrics: called on a network thread for every answer. `route`: as Admission::route (http.h).
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

  // Takes the address: callers can connect, and wait until start(). Error invalid: it is wrong, in use, or not
  // permitted.
  Status bind();
  // Starts the network threads, which answer requests from now on; calls bind() if that was not done. Errors as bind().
  Status start();
  // The port that bind() took. REQUIRES: bound.
  int port() const;
  // Accepts no more connections, waits up to `grace` for requests in flight to be answered, then closes all
  // connections. Handlers are not called after that. Does nothing without start(): the destructor gives an address back
  // that was only bound.
  void stop(std::chrono::milliseconds grace);

  // For tests, which call its admit() without a socket.
  Router& router();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin
