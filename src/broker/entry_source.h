// EntrySource: a subscription to one entry topic of a broker. It receives messages that become jobs, and settles them.
// Used by entry/entry_consumer, one thread per source.
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
// Thread: owner only, except interrupt() (any, while the source lives).
class EntrySource {
 public:
  virtual ~EntrySource() = default;

  // Connects and subscribes, within about kConnectTimeout. Called once, first.
  virtual Status open() = 0;

  // Waits up to `timeout` for the first message, and returns those that have arrived, at most `most` and about 8 MiB;
  // empty after the time-out. Error: the connection is broken.
  virtual Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) = 0;

  // Settles each message of the last receive(), in order: nullopt acknowledges it; a reason rejects it, so that it goes
  // to the dead letters. Error: as above.
  virtual Status settle(const std::vector<std::optional<std::string>>& refusals) = 0;

  // Makes a call that waits for the broker fail soon. The default does nothing, for sources whose calls end in time.
  virtual void interrupt() {}
};

// An entry topic, read from the node's configuration.
struct Entry {
  std::string target;  // names broker and topic in logs, without secrets
  std::function<std::unique_ptr<EntrySource>()> make_source;
};

}  // namespace tocsin
