// Link: one connection to a broker that publishes messages. One implementation per broker; used by Publisher.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/message.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// The broker's answer for one message.
struct Verdict {
  std::uint64_t ticket = 0;  // the number that the caller gave the message at send()
  std::string refusal;       // empty: confirmed; otherwise why it was refused
};

// Thread: owner only, except interrupt() (any, while the link lives).
class Link {
 public:
  virtual ~Link() = default;

  // Connects. Called once, first. `wake`: an eventfd that ends a poll() early. `timeout` bounds each wait: to resolve
  // the name, to connect, for every answer.
  virtual Status open(int wake, std::chrono::milliseconds timeout) = 0;

  // Why the broker takes no messages now, such as a full disk; empty when it does.
  virtual std::string hold() const { return {}; }

  // Why messages have no verdict yet, if it is known; otherwise empty.
  virtual std::string trouble() const { return {}; }

  // Queues one message without waiting for the broker. Error: the connection is broken.
  virtual Status send(std::uint64_t ticket, const BrokerMessage& message) = 0;

  // Sends and receives; waits up to `timeout` until it can do either, or `wake` is readable. Appends to `verdicts`,
  // also before an Error. Error: the connection is broken; messages without a verdict may have arrived.
  virtual Status poll(Duration timeout, std::vector<Verdict>& verdicts) = 0;

  // Makes a call that waits for the broker fail soon; may do nothing if every wait is bounded by open()'s time-out.
  virtual void interrupt() = 0;
};

using LinkMaker = std::function<std::unique_ptr<Link>()>;

}  // namespace tocsin
