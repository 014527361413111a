// RedisLink: a connection that appends messages to one Redis stream with pipelined XADDs. Implements Link, which has
// the contract of the calls (broker/link.h). poll() returns one verdict per answer of the server: an id confirms the
// message, an error refuses it with its text.
#pragma once

#include <hiredis/hiredis.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "broker/link.h"
#include "broker/peer.h"

namespace tocsin {

struct RedisServer {
  BrokerPeer peer;
  // Empty user: the default user. Empty password: no login, and `user` is ignored.
  std::string user, password;
  int database = 0;
};

struct RedisStream {
  std::string name;
  std::optional<std::int64_t> maxlen;  // trims the stream to about this number of entries; nullopt: never
};

// Thread: owner only (the publisher's), except interrupt() (any, while the link lives).
class RedisLink final : public Link {
 public:
  RedisLink(RedisServer server, RedisStream stream) : server_(std::move(server)), stream_(std::move(stream)) {}
  ~RedisLink() override { shut_fd_ = -1; }

  Status open(int wake, std::chrono::milliseconds timeout) override;
  Status send(std::uint64_t ticket, const BrokerMessage& message) override;
  Status poll(Duration timeout, std::vector<Verdict>& verdicts) override;
  void interrupt() override;

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  Status ask(const std::vector<std::string>& words);  // for open(): waits for the answer
  Status flush(bool& is_flushed);                     // false: the socket takes no more now
  Error failure() const;                              // of context_

  const RedisServer server_;
  const RedisStream stream_;
  int wake_ = -1;
  std::unique_ptr<redisContext, Free> context_;
  Dialer dialer_;
  std::atomic<int> shut_fd_{-1};    // the socket that interrupt() shuts down; -1: none
  std::deque<std::uint64_t> sent_;  // tickets in the order of the answers
};

}  // namespace tocsin
