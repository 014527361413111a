// EntrySource: a connection to a broker that receives the messages of one entry topic, which become jobs, and settles
// them. An EntryConsumer, with a thread of its own, calls open() once, then receive() and settle() in turn. After an
// Error it destroys the source and makes another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/entry_message.h"
#include "tocsin/error.h"

namespace tocsin {

// At least once: a message that was received and not settled is delivered again, to this or another consumer.
// Thread: owner only (the consumer's), except interrupt() (any, while the source lives).
class EntrySource {
 public:
  virtual ~EntrySource() = default;

  // Connects and subscribes; each wait for the broker takes at most kConnectTimeout (5 s).
  virtual Status open() = 0;

  // Waits up to `timeout` for the first message, and returns those that have arrived, at most `most` and about 8 MiB;
  // empty after the time-out. REQUIRES: earlier messages are settled. Error: the connection is broken.
  virtual Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) = 0;

  // Settles each message of the last receive(), in order: nullopt acknowledges it; a reason rejects it, so that it goes
  // to the dead letters, if the broker has any. Error: as above.
  virtual Status settle(const std::vector<std::optional<std::string>>& refusals) = 0;

  // Makes the current call and later ones fail. The default does nothing, for sources whose every wait is bounded.
  virtual void interrupt() {}
};

// An entry topic, read from the node's configuration.
struct Entry {
  std::string target;                                         // names broker and topic in logs, without secrets
  std::function<std::unique_ptr<EntrySource>()> make_source;  // not opened yet; called for each new try
};

}  // namespace tocsin
