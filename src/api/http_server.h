// HttpServer: the asynchronous HTTP/1.1 server (TCP without TLS) of the REST interface. Owned by Api (api.h). Its
// network threads read requests, pass each to the HttpApp (http.h), and write the answers. Everything that a caller can
// send has a limit in bytes and a deadline.
//
// - A slow sender occupies one socket and no thread. The deadline of the header counts from its first byte, and the
//   deadline of the body from the end of the header; further bytes do not extend them.
// - A proxy in front and this server never see different requests in the same bytes (request smuggling). These are
//   answered 400, and the connection is closed: Content-Length together with Transfer-Encoding, either of them twice,
//   folded header lines, bare line feeds, any transfer coding but chunked, and HTTP/1.0 with Transfer-Encoding.
// - A body is read only after the app has admitted the head, and only up to the limit in its Admission. If the app
//   refused the request, a body of up to 64 KiB is read and ignored, so that the connection can be used again; with a
//   larger body the connection is closed after the answer.
// - Pipelined requests are answered in order, one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "api/http.h"
#include "tocsin/error.h"

namespace tocsin {

// Limits of one server, each with the answer to a caller that exceeds it. A deadline is noticed up to 250 ms late.
struct HttpLimits {
  std::size_t header_bytes = 8192;  // request line, fields and the empty line; over it: 431
  std::size_t header_lines = 64;    // request line and empty line included; over it: 400
  // Over this number a new connection replaces the longest idle one of its network thread. If none is idle, it gets
  // 503; and 128 connections over the number it is closed without an answer.
  std::size_t connections = 4096;
  // The sum of all bodies of requests over 16 KiB (kSmallBody) that are held at once, until the app has dropped the
  // request, which may be long after a 503 at the end of the reply time. A chunked body counts with its limit. Over it:
  // 503.
  std::size_t large_body_bytes = std::size_t{256} << 20;
  // The sum of all bodies of answers over 16 KiB that are being written; one that several connections share
  // (SharedBody) counts once. Over it GET is answered 503. Other answers tell what was done and are never refused, but
  // counted.
  std::size_t large_answer_bytes = std::size_t{256} << 20;
  std::chrono::milliseconds header_time{5'000};  // from the first byte to the end of the header; then 408
  std::chrono::milliseconds body_time{10'000};   // from the end of the header to the end of the body; then 408
  std::chrono::milliseconds idle_time{60'000};   // to the first byte of a request; then the connection is closed
  // From the end of the request to the answer (Admission::reply_timeout replaces it); then 503.
  std::chrono::milliseconds reply_time{30'000};
  std::chrono::milliseconds write_time{30'000};  // to send an answer; then the connection is closed
  // After a refusal that ends the connection, input is read and ignored for this long: closing a socket with unread
  // input resets the connection, which may lose the answer.
  std::chrono::milliseconds linger_time{2'000};
};

struct HttpServerConfig {
  std::string host = "127.0.0.1";
  int port = 0;     // 0: any free one
  int threads = 1;  // network threads; at least one is started
  HttpLimits limits;
};

// Used once: bind(), start(), stop(). Thread: owner only (Api's owner); answers (Responder) may come from any thread,
// also after the server was destroyed.
class HttpServer {
 public:
  // `app` is called on the network threads, several at once; it must not block. REQUIRES: `app` outlives the server.
  HttpServer(HttpApp& app, HttpServerConfig config);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds the address and listens: clients can connect, and wait for an answer until start(). Error invalid, field
  // "listen": the address is wrong, in use or not permitted.
  Status bind();
  // Starts the network threads, which answer requests from now on. Calls bind() first if that was not done, with its
  // errors.
  Status start();

  // The port that bind() took. REQUIRES: bound.
  int port() const;

  // Accepts no more connections, closes idle ones, and waits up to `grace` until the requests in flight are answered.
  // Then closes all connections and ends the threads. `app` is not called after that. Does nothing without start().
  void stop(std::chrono::milliseconds grace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin
