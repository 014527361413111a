// One connection to a broker, from its making to its end. One implementation per kind of broker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/message.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// What the broker says of a message.
struct Verdict {
  std::uint64_t ticket = 0;  // of send()
  std::string refusal;       // empty: it has the message, as safely as its kind promises
};

// Thread: owner only, except interrupt() (any, while the link lives).
class Link {
 public:
  virtual ~Link() = default;

  // Connects. `wake`: an eventfd that ends a poll() early. `timeout`: of each thing it waits for,
  // the name, the connection and every answer. Called once, first.
  virtual Status open(int wake, std::chrono::milliseconds timeout) = 0;

  // Why the broker takes no messages right now; empty when it does.
  virtual std::string hold() const { return {}; }

  // What stands in the way of messages that have no verdict, as far as it is known; empty when it is not.
  virtual std::string trouble() const { return {}; }

  // Hands one message over without waiting for the broker. Error: the connection is of no use any more.
  virtual Status send(std::uint64_t ticket, const BrokerMessage& message) = 0;

  // Moves what can be moved both ways; waits up to `timeout` until there is something, or `wake` is readable. Adds to
  // `verdicts`, also when it returns an Error: the connection is of no use any more, and messages without a verdict may
  // or may not have arrived.
  virtual Status poll(Duration timeout, std::vector<Verdict>& verdicts) = 0;

  // Makes a call that waits for the peer fail soon.
  virtual void interrupt() = 0;
};

using LinkMaker = std::function<std::unique_ptr<Link>()>;

}  // namespace tocsin
