// Creates jobs from the messages of entry topics, with the rules of POST /v1/jobs. The readers of brokers are in
// src/entry.
//
// A message is {"realTopicName": type, "delayTime": milliseconds | "action_time": RFC 3339, "message": any JSON,
// "biz_id"?: string or unsigned integer, "max_attempts"?: 1..1000}. `message` becomes the attribute. Without biz_id the
// message's key is used, or its id where there is no key of 1 to 128 bytes of UTF-8. The id is the idempotency key (the
// SHA-256 of one that is too long or no UTF-8), so a redelivered message changes nothing. delayTime counts from the
// time at which the message was sent, if the broker knows that to the millisecond, otherwise from the creation of the
// job.
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
  std::string why;  // refused: why this message can never become a job
};

// Creates the jobs of all valid messages, each in its shard's database, and waits for the databases; one answer per
// message, in order. Error: some jobs may have been created; call again with the same messages. Called by the entry
// consumers on threads of their own. REQUIRES: not on a database thread of the backend, which would wait for itself.
Result<std::vector<EntryAnswer>> take_messages(ApiContext& context, std::span<const EntryMessage> messages);

}  // namespace tocsin
