// Link: one connection to a broker that publishes messages; there is an implementation for each sort of broker. A
// Publisher (publisher.h) makes a link for each try to connect, calls it on the publisher's thread, and destroys it
// after an Error of any call.
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
  std::uint64_t ticket = 0;  // the number given to the message at send()
  std::string refusal;       // why the broker refused the message; empty: confirmed
};

// Thread: owner only (the publisher's), except interrupt() (any, while the link lives).
class Link {
 public:
  virtual ~Link() = default;

  // Connects. Called once, before all other calls. `wake`: an eventfd; the publisher writes to it to end a poll()
  // early. `timeout`: the limit of each wait: resolving the name, connecting, every answer.
  virtual Status open(int wake, std::chrono::milliseconds timeout) = 0;

  // Why the broker takes no messages now, such as a full disk; empty: it takes messages. The publisher ends each
  // waiting attempt as a retry with this text.
  virtual std::string blocked_because() const { return {}; }

  // A known reason why sent messages have no verdict, such as a broker at a forbidden address; empty: none.
  virtual std::string trouble() const { return {}; }

  // Queues or writes one message. It may wait while the socket takes no data, but does not wait for the verdict.
  // `ticket`: unique on this link. Error: the connection is broken.
  virtual Status send(std::uint64_t ticket, const BrokerMessage& message) = 0;

  // Sends and receives. If it can do neither, it waits until it can, `wake` is readable, or `timeout` has passed. It
  // resets `wake` after a wait. Appends to `verdicts`, even before an Error. Error: the connection is broken; messages
  // without a verdict may have arrived.
  virtual Status poll(Duration timeout, std::vector<Verdict>& verdicts) = 0;

  // Makes a call that waits for the broker fail soon. May do nothing if the time-out of open() limits every wait.
  virtual void interrupt() = 0;
};

using LinkMaker = std::function<std::unique_ptr<Link>()>;

}  // namespace tocsin
