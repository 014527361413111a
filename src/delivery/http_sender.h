// HttpSender: sends HTTP POSTs, thousands at a time on a few threads, each at most once and within one total deadline.
// Owned by WebhookKind (webhook.h).
//
// Guarantees
//  - One send is at most one request on the wire. A kept connection that the peer has closed is noticed before the
//    request is written, and replaced. From the first byte written on, every failure is a failed request; nothing is
//    sent again. Redirects are answers.
//  - The deadline covers all steps: resolve, connect, TLS, write, read.
//  - The status decides as soon as the header has arrived. The body is read only to keep the connection; if it exceeds
//    64 KiB or the deadline, the connection is closed.
//  - Memory: the header of an answer has at most 16 KiB, and its body is read and discarded 4 KiB at a time.
//  - Connections are made only to addresses that the guard allows, whatever a name resolves to. No proxy is used.
//  - HTTPS peers are verified: certificate chain and host name, TLS 1.2 or later.
//  - A slow peer does not delay requests to other origins. Slow names do so only if their lookups occupy all threads of
//    SystemResolver (resolver.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "delivery/address_guard.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

struct HttpTarget {
  bool is_https = false;
  std::string host;  // name or address, without brackets
  std::uint16_t port = 0;
  std::string authority;  // value of the Host header
  std::string path;       // path and query; begins with a slash
  std::string origin;     // scheme://host:port: connections are kept per origin, and messages name it
};

struct OutboundRequest {
  HttpTarget target;
  std::vector<std::pair<std::string, std::string>> headers;  // besides Host, Content-Length
  std::string body;
  // The earlier one of `timeout` and `deadline` ends the request. Both are required.
  Duration timeout{};                   // counted from when the request's turn comes
  MonoTime deadline{};                  // also covers the wait for the turn; no first byte is sent after it
  MonoTime start_by = MonoTime::max();  // not sent after this: Error conflict
  // Called on the sender's thread when the request's turn comes: fewer than max_connections requests to its origin are
  // under way. False: the request is not sent, and ends with Error conflict. Must not block or throw.
  std::function<bool()> may_begin = {};
};

struct OutboundReply {
  int status = 0;
  std::string retry_after;  // the header as sent, or empty
};

class SenderLoop;
class Resolver;

struct HttpSenderOptions {
  int threads = 2;
  int max_connections = 256;  // per origin; further requests wait in order of send()
  // Idle connections are closed after this time, at most a second late. Common servers close theirs after 5 s; a
  // request that is sent at that moment would be in doubt.
  Duration idle_timeout = std::chrono::seconds(4);
  std::string ca_file = {};  // certificates (PEM) trusted besides the system's; may be empty
  AddressGuard guard = {};
  std::shared_ptr<Resolver> resolver = {};  // null: a SystemResolver
};

struct HttpSenderStats {
  // Now:
  std::int64_t in_flight = 0;  // requests whose turn has come
  std::int64_t waiting = 0;    // requests that wait for their turn
  // Since the start:
  std::int64_t requests = 0;  // sent, at least in part
  std::int64_t connects = 0;  // attempts to connect; a request over a kept connection makes none
};

// Each origin belongs to one thread, so its connections need no lock. Thread: send, call_at, stats any; the rest owner
// only. `done` runs on a thread of the sender (after stop(), on the caller's); it must not block or throw.
class HttpSender {
 public:
  // Gets an answer of any status, or an Error:
  //  - conflict: nothing was sent, because the turn never came (deadline, may_begin, stop) or the connection was ready
  //    only after start_by or the deadline.
  //  - unavailable: nothing was sent, because resolve, connect or TLS failed, took too long, or was stopped.
  //  - in_doubt: at least a part of the request was sent, and no answer came.
  //  - invalid: the guard allows no address of the host.
  using Done = std::function<void(Result<OutboundReply>)>;

  HttpSender(HttpSenderOptions options, const Clock& clock);
  ~HttpSender();

  // Error invalid: ca_file cannot be read.
  Status start();
  // Ends all requests, waiting or in flight: each `done` gets an Error (code as above) whose message ends in "shutting
  // down". Returns when all have been called. May be called again.
  void stop();
  // Sends a POST. Before start() the request waits; after stop() `done` gets an Error.
  void send(OutboundRequest request, Done done);
  // Calls `call` on a thread of the sender, at `time` or later; not after stop().
  void call_at(MonoTime time, std::function<void()> call);
  HttpSenderStats stats() const;

 private:
  const HttpSenderOptions options_;
  std::vector<std::unique_ptr<SenderLoop>> loops_;
};

}  // namespace tocsin
