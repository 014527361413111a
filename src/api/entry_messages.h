// create_jobs_from_messages(): creates jobs from the messages of entry topics (topics of a broker whose messages become
// jobs), with the limits of POST /v1/jobs. Called by the entry consumers (entry/entry_consumer.h), which receive the
// messages.
//
// A message is a JSON object:
// - "realTopicName": the type.
// - "delayTime" (milliseconds from EntryMessage::sent_at, or from its receipt if the broker gives none) or
//   "action_time" (RFC 3339).
// - "message": any JSON; becomes the job's attribute.
// - "biz_id" (optional): string or unsigned integer. Default: the key of the broker's message if it is 1 to 128 bytes
//   of UTF-8, otherwise the message's id.
// - "max_attempts" (optional): 1..1000.
//
// The id of the broker's message is the job's idempotency key, so a redelivered message changes nothing. The SHA-256
// stands for an id that is too long or not UTF-8.
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
  std::string why;  // if refused: why this message can never become a job; human-readable
};

// Creates the jobs of all valid messages, each in its shard's database, and waits until the databases have answered.
// Returns one answer per message, in order. Error: a database did not answer or could not be asked, or too many
// requests wait. Some jobs may have been created; the caller repeats the call with the same messages. Thread: any but a
// database thread of the backend, which would wait for itself.
Result<std::vector<EntryAnswer>> create_jobs_from_messages(ApiContext& context, std::span<const EntryMessage> messages);

}  // namespace tocsin
