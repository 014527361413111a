// Where messages for new jobs come from: one subscription to one entry topic.
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

  // Waits up to `timeout` for the first message, and returns those that are at hand, at most `most`. The broker sends
  // only so many ahead. Error: the connection is of no use any more.
  virtual Result<std::vector<EntryMessage>> receive(std::size_t most, Duration timeout) = 0;

  // Tells the broker what became of each message of the last receive(), in order: nullopt, it is taken; or why it can
  // never be: then it goes to the dead letters. Error: as above.
  virtual Status settle(const std::vector<std::optional<std::string>>& refusals) = 0;

  // Makes a call that waits for the peer fail soon.
  virtual void interrupt() {}
};

// An entry topic, as its settings say.
struct Entry {
  std::string target;  // names broker and topic in logs, without secrets
  std::function<std::unique_ptr<EntrySource>()> make_source;
};

}  // namespace tocsin
