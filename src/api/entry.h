// take_messages(): creates jobs from the messages of entry topics, with the limits of POST /v1/jobs. The entry
// consumers (src/entry), which receive the messages from brokers, call it.
//
// A message is {"realTopicName": type, "delayTime": milliseconds | "action_time": RFC 3339, "message": any JSON,
// "biz_id"?: string or unsigned integer, "max_attempts"?: 1..1000}. `message` becomes the attribute. Without biz_id the
// key of the broker's message is used, or its id where there is no key of 1 to 128 bytes of UTF-8. The id is the
// idempotency key (the SHA-256 of one that is too long or no UTF-8), so a redelivered message changes nothing.
// delayTime counts from EntryMessage::sent_at; without it from the creation of the job.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/context.h"
#include "core/entry_message.h"

namespace tocsin {

struct EntryAnswer {
  enum class Kind { created, existing, refused };
  Kind kind = Kind::created;
  std::string why;  // refused only: why this message can never become a job; human-readable
};

// Creates the jobs of all valid messages, each in its shard's database, and waits until the databases have answered;
// one answer per message, in order. Error: some databases did not answer or could not be asked. Some jobs may have been
// created; call again with the same messages. Thread: any but a database thread of the backend, which would wait for
// itself.
Result<std::vector<EntryAnswer>> take_messages(ApiContext& context, std::span<const EntryMessage> messages);

}  // namespace tocsin
