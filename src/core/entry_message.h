// EntryMessage: a message from an entry topic, as the reader of its broker (EntrySource) received it. It becomes a job
// (api/entry_messages.h).
#pragma once

#include <optional>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

struct EntryMessage {
  std::string body;  // any bytes
  std::string id;    // the same in every delivery of this message: the job's idempotency key; any bytes, not empty
  std::string key;   // business key, or empty; any bytes
  std::optional<WallTime> sent_at;  // to the millisecond, when the broker knows it
  Duration waited{0};               // since it was received, for the database
};

}  // namespace tocsin
