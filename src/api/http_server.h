// The only server transport: HTTP/1.1 over TCP, asynchronous, with total deadlines and limits on everything a caller
// can send.
//
// - A slow sender costs one socket, never a thread: the deadline of the header counts from its first byte, that of the
//   body from the end of the header, not from the last byte read.
// - No request is read differently by a proxy in front (request smuggling): Content-Length with Transfer-Encoding,
//   either of them twice, folded header lines, bare line feeds, any transfer coding but chunked, and HTTP/1.0 with
//   Transfer-Encoding are answered 400, and the connection is closed.
// - A body is read only after the app has judged its head, and never beyond the limit named there; of a refused request
//   at most 64 KiB are read, so that the connection can be used again.
// - Pipelined requests are answered in order, one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "api/http.h"
#include "tocsin/error.h"

namespace tocsin {

struct HttpLimits {
  std::size_t header_bytes = 8192;  // request line and all fields
  std::size_t header_lines = 64;
  // Over it a new connection replaces the longest idle one of its network thread; without an idle one it gets 503.
  std::size_t connections = 4096;
  // What bodies of over 256 KiB may take together; over it: 503.
  std::size_t large_body_bytes = std::size_t{256} << 20;
  std::chrono::milliseconds header_time{5'000};
  std::chrono::milliseconds body_time{10'000};
  std::chrono::milliseconds idle_time{60'000};
  std::chrono::milliseconds reply_time{30'000};  // from the whole request to the answer
  std::chrono::milliseconds write_time{30'000};
  std::chrono::milliseconds linger_time{
      2'000};  // after a refusal: how long input is drained, so that a reset does not lose the reply
};

struct HttpServerConfig {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
  int threads = 1;
  HttpLimits limits;
};

// Thread: owner only; answers (Responder) may come from any thread, and even after the server is gone.
class HttpServer {
 public:
  // REQUIRES: `app` outlives the server.
  HttpServer(HttpApp& app, HttpServerConfig config);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Takes the address: callers may connect, and wait until start(). Error invalid: the address is wrong or in use.
  Status bind();
  // Answers requests from now on; calls bind() if that was not done. Errors as bind().
  Status start();

  // REQUIRES: bound.
  int port() const;

  // Accepts no more, closes idle connections, and waits up to `grace` for requests in flight to be answered; then
  // closes what is left.
  void stop(std::chrono::milliseconds grace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin
