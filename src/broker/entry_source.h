// EntrySource: a connection to a broker that receives the messages of one entry topic (its messages become jobs) and
// settles them. Owned by an EntryConsumer (entry/entry_consumer.h), which has a thread of its own. It calls open()
// once, then receive() and settle() in turn. After an Error it destroys the source and makes another one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/entry_message.h"
#include "tocsin/error.h"

namespace tocsin {

// At least once: a message that was received but not settled is delivered again, to this or another consumer. Thread:
// owner only (the consumer's), except interrupt() (any, while the source lives).
class EntrySource {
 public:
  virtual ~EntrySource() = default;

  // Connects and subscribes. Each wait for the broker takes at most kConnectTimeout (5 s).
  virtual Status open() = 0;

  // Waits up to `timeout` for the first message. Returns the messages that have arrived, `most` and about 8 MiB at
  // most; none after the time-out. REQUIRES: earlier messages are settled. Error: the connection is broken.
  virtual Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) = 0;

  // Settles each message of the last receive(), in order. `refusals`: one element per message: nullopt acknowledges the
  // message; a reason rejects it, so that it becomes a dead letter if the broker has these. Error: the connection is
  // broken.
  virtual Status settle(const std::vector<std::optional<std::string>>& refusals) = 0;

  // Makes the present call and later ones fail. The default does nothing, for sources whose waits all have a time
  // limit.
  virtual void interrupt() {}
};

// An entry topic, read from the node's configuration.
struct Entry {
  std::string target;                                         // names broker and topic in logs, without secrets
  std::function<std::unique_ptr<EntrySource>()> make_source;  // not open yet; called for each try to connect
};

}  // namespace tocsin
