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

#include "base/byte_budget.h"
#include "base/mutex.h"

namespace tocsin {

// Bodies of requests and answers up to this size are not counted against the server's budgets (HttpLimits).
inline constexpr std::size_t kSmallBody = 16 << 10;

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
  // Counts a large body against HttpLimits::large_body_bytes until the last copy of the request is destroyed.
  ByteBudget::Reservation reservation = {};
};

// The body of an answer that several connections write: they share its text, and it is counted once. Thread: any.
class SharedBody {
 public:
  explicit SharedBody(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }
  // The reservation that all connections share while one of them writes the text; nullptr: the budget is used up.
  ByteBudget::Reservation reserve(ByteBudget& budget) const;

 private:
  const std::string text_;
  mutable Mutex mutex_;
  mutable std::weak_ptr<const void> reservation_ TOCSIN_GUARDED_BY(mutex_);
};

struct HttpResponse {
  std::string_view text() const { return shared_body ? shared_body->text() : body; }
  void share_body();  // copies made from now on share the text

  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>>
      headers;                                         // further ones; not escaped, so none may hold text of a caller
  std::string_view cache_control = "no-store";         // a literal
  std::shared_ptr<const SharedBody> shared_body = {};  // set: sent in place of `body`
};

// Answers one request. Copies share the request: the first answer is sent, later ones are ignored. If the last copy is
// destroyed without an answer, the caller gets a 500. Thread: any.
class Responder {
 public:
  using Send = std::function<void(HttpResponse)>;
  // `is_gone`: set by the server when the caller has closed the connection or the reply time is over.
  explicit Responder(Send send, std::shared_ptr<const std::atomic<bool>> is_gone = {});
  Responder with(Send send) const;  // another responder to the same caller: is_gone() is the same
  void operator()(HttpResponse response) const;
  // True: the connection is closed, or the reply time is over. On a route without a reply_timeout the server notices a
  // disconnected caller only when the reply time is over.
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
