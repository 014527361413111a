// The interface between the HTTP server (http_server.h) and the API. For each request the server calls HttpApp::admit()
// with the request's head, reads the body, and calls Admission::run, which answers through a Responder.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin {

// The parts of a request that the API reads; the server drops every other header field. A field that the request lacks
// is empty.
struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string target;  // path and query, still percent-encoded; begins with '/'
  std::string host;    // of the Host field, or of an absolute target
  std::string origin;
  std::string authorization;
  std::string content_type;
  std::string traceparent;
  std::string accept_encoding;
  std::string if_match;
  std::string if_none_match;
  int max_age_s = 0;    // max-age of Cache-Control: the caller accepts an answer up to this old
  std::string address;  // IP address of the caller's end of the connection, without the port
  std::string body;     // empty at admission
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>>
      headers;                                  // further ones; not escaped, so none may hold text of a caller
  std::string_view cache_control = "no-store";  // a literal
};

// Answers one request. Copies share the request: the first answer is sent, later ones are ignored. If the last copy is
// destroyed without an answer, the caller gets a 500. Thread: any.
class Responder {
 public:
  using Send = std::function<void(HttpResponse)>;
  // `is_gone`: set by the server when the caller has closed the connection or the reply time is over.
  explicit Responder(Send send, std::shared_ptr<const std::atomic<bool>> is_gone = {});
  void operator()(HttpResponse response) const;
  // True: the caller has disconnected, or the reply time is over. Always false for a route without a reply_timeout.
  bool is_gone() const;

 private:
  struct Pending;
  std::shared_ptr<Pending> pending_;
};

// The decision on a request, made from its head alone: only a caller that may send a body has it read.
struct Admission {
  std::string route;                    // path template, such as "/v1/jobs/{job_id}"; empty: no route, or refused
  std::optional<HttpResponse> refusal;  // set: answered with this, and run is not called
  std::size_t body_limit = 0;           // bytes; a larger body is answered 413
  std::optional<std::chrono::milliseconds> reply_timeout;  // for long polls; nullopt: HttpLimits::reply_time
  // Called once with the whole request, on a network thread; must not block. Answers through the Responder.
  std::function<void(HttpRequest, Responder)> run;
};

// What the server serves: the Router, or the Dashboard in front of it. Thread: any of the server's network threads;
// calls may overlap.
class HttpApp {
 public:
  virtual ~HttpApp() = default;
  virtual Admission admit(const HttpRequest& head) = 0;
  // For the metrics: an answer to a request is about to be sent. `route`: Admission::route; empty for an answer that
  // the server gave before admission, such as a 408.
  virtual void answered(const std::string& /*route*/, int /*status*/) {}
};

std::string_view reason_phrase(int status);  // "Not Found"; "Unknown" for a status that this program does not use

}  // namespace tocsin
