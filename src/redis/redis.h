// The handler kind `redis`: an attempt appends its job to a Redis stream. Redis streams are exits only; they are no
// entry topics.
#pragma once

#include "broker/broker_kind.h"

namespace tocsin {

// Reads the handler settings of a type. BrokerKind calls it to check them and to make the handler. Makes no connection:
// the type's publisher thread (broker/publisher.h) connects later, with Exit::make_link. `guard`: the addresses to
// which connections are allowed; null: all. Error invalid, field `handler.NAME`: a setting is wrong, missing or
// unknown. Thread: any.
//
//  - url, required: redis://[user[:password]@]host[:port][/database], by default port 6379 and database 0. No TLS.
//    Without a password there is no login.
//  - stream: the key of the stream, 1 to 1024 bytes; by default the name of the type.
//  - maxlen: each append trims the stream to about this number of entries, 1 or more; absent: never trimmed.
//
// An attempt is done when the server has answered its XADD: the entry is in the server's memory. An error answer, or a
// connection that breaks before the answer, is a failed attempt: the job is tried again. Whether the entry survives a
// crash depends on the server's settings. With `appendonly yes` and `appendfsync always` it is on disk; with `everysec`
// up to a second of entries may be lost. A failover may lose entries that had not reached the replica.
Result<Exit> read_redis_exit(const BizType& type, const GuardPtr& guard);

}  // namespace tocsin
