// Sends HTTP requests: many at once on one thread, each exactly once and within one total deadline.
//
// Guarantees
//  - One send is at most one request on the wire. A kept connection that has died is noticed before the request is
//  written and
//    replaced; from the first byte written on, every failure is a failed request and nothing is sent again. Redirects
//    are answers.
//  - The deadline covers everything from the first step on: resolve, connect, TLS, write, read.
//  - The status decides as soon as the header has arrived. The body is read only so that the connection can be kept;
//  past 64 KiB or the
//    deadline the connection is closed instead.
//  - Memory: at most 16 KiB of answer header and 64 KiB of answer body per connection, whatever the peer sends.
//  - HTTPS peers are verified: certificate chain and host name, TLS 1.2 or later.
//  - A name that resolves slowly, or a peer that answers slowly, takes nothing from the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

struct HttpTarget {
  bool is_https = false;
  std::string host;  // name or address, without brackets
  std::uint16_t port = 0;
  std::string authority;  // the Host header
  std::string path;       // and query; begins with a slash
  std::string origin;     // scheme://host:port: connections are kept per origin, and messages name it
};

struct OutboundRequest {
  HttpTarget target;
  std::vector<std::pair<std::string, std::string>> headers;  // besides Host, Content-Length
  std::string body;
  Duration timeout{};                   // from the moment a connection may be used
  MonoTime deadline{};                  // absolute, waiting for a connection included
  MonoTime start_by = MonoTime::max();  // not to be sent after this: Error conflict
};

struct OutboundReply {
  int status = 0;
  std::string retry_after;  // the header as sent, or empty
};

struct HttpSenderOptions {
  int max_connections = 256;  // per origin; further requests wait their turn inside
  // Less than the 5 s after which common servers close idle connections: theirs and our next request would cross.
  Duration idle_timeout = std::chrono::seconds(4);
  std::string ca_file = {};  // PEM, trusted besides the system's own; may be empty
};

// Thread: send any; the rest owner only. `done` runs on the sender's thread (after stop() on the caller's) and must not
// block or throw.
class HttpSender {
 public:
  // Error conflict: no connection became free for it. unavailable: the peer could not be reached. in_doubt: the request
  // was sent, or in part, and no answer came.
  using Done = std::function<void(Result<OutboundReply>)>;

  HttpSender(HttpSenderOptions options, const Clock& clock);
  ~HttpSender();

  // Error invalid: ca_file cannot be read.
  Status start();
  // Ends what is in flight, each `done` with an Error whose message ends in "shutting down"; returns when all have been
  // called.
  void stop();
  // POST. Before start() it waits, after stop() it is refused through `done`.
  void send(OutboundRequest request, Done done);

 private:
  class Engine;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace tocsin
