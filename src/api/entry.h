// Messages of entry topics: the other way to create jobs, with the same rules.
//
// A message is {"realTopicName": type, "delayTime": milliseconds | "action_time": RFC 3339, "message": any JSON,
// "biz_id"?: string or unsigned integer, "max_attempts"?: 1..1000}. `message` becomes the attribute. Without biz_id the
// message's key is taken, or else its id. The id is the idempotency key, so a message that is given again changes
// nothing. delayTime counts from when the message was sent, if the broker knows that to the millisecond, otherwise
// from when it is taken.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/context.h"
#include "core/entry_message.h"

namespace tocsin {

struct EntryAnswer {
  enum class Kind { created, existing, refused };
  Kind kind = Kind::created;
  std::string why;  // refused: it can never become a job
};

// Creates the jobs of all valid messages, each in its shard's database, and waits for the databases; one answer per
// message, in order. Error: some jobs may have been created; call again with the same messages, their ids are
// idempotency keys. Called by the entry consumers. REQUIRES: not on a thread of the backend.
Result<std::vector<EntryAnswer>> take_messages(ApiContext& context, std::span<const EntryMessage> messages);

}  // namespace tocsin
