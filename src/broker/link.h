// Link: one connection to a broker that publishes messages. One implementation per kind of broker. A Publisher makes a
// link for each try to connect, calls it on the publisher's thread, and destroys it after an Error of any call.
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

// Thread: owner only (the publisher's), except interrupt() (any, while the link lives).
class Link {
 public:
  virtual ~Link() = default;

  // Connects. Called once, first. `wake`: an eventfd that ends a poll() early. `timeout` bounds each wait: to resolve
  // the name, to connect, for every answer.
  virtual Status open(int wake, std::chrono::milliseconds timeout) = 0;

  // Why the broker takes no messages now, such as a full disk. The publisher fails each waiting attempt with this text,
  // so that its job is tried again. Empty: it takes them.
  virtual std::string blocked_because() const { return {}; }

  // A known cause why messages that were sent have no verdict, such as a broker at a forbidden address; else empty.
  virtual std::string trouble() const { return {}; }

  // Queues or writes one message; may wait while the socket takes no data, but never for the verdict. `ticket`: unique
  // on this link. Error: the connection is broken.
  virtual Status send(std::uint64_t ticket, const BrokerMessage& message) = 0;

  // Sends and receives. If there is nothing to do, waits until it can do either, `wake` is readable, or `timeout` is
  // over; a wait resets `wake`. Appends to `verdicts`, also before an Error. Error: the connection is broken; messages
  // without a verdict may have arrived.
  virtual Status poll(Duration timeout, std::vector<Verdict>& verdicts) = 0;

  // Makes a call that waits for the broker fail soon; may do nothing if every wait is bounded by open()'s time-out.
  virtual void interrupt() = 0;
};

using LinkMaker = std::function<std::unique_ptr<Link>()>;

}  // namespace tocsin
