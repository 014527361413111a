// The handler kind `redis`: an attempt appends its job to a Redis stream. Redis streams are exits only; they are no
// entry topics.
#pragma once

#include "broker/broker_kind.h"

namespace tocsin {

// Reads the handler settings of a type, for BrokerKind: once to check them, once to make the handler. It connects to
// nothing; the type's publisher thread (broker/publisher.h) connects later, with Exit::make_link. `guard`: the
// addresses that may be connected to; null: any. Error invalid, field `handler.NAME`: a setting is wrong, missing or
// unknown. Thread: any.
//
//  - url, required: redis://[user[:password]@]host[:port][/database], by default port 6379 and database 0. No TLS.
//    Without a password there is no login.
//  - stream: the key of the stream, 1 to 1024 bytes; by default the name of the type.
//  - maxlen: each append trims the stream to about this number of entries, 1 or more; absent: never trimmed.
//
// The outcome of an attempt is done when the server has answered its XADD: the entry is in the server's memory. An
// error answer and a connection that breaks before the answer are failed attempts: the job is tried again. Whether the
// entry survives a crash is the server's setting: with `appendonly yes` and `appendfsync always` it is on disk, with
// `everysec` up to a second may be lost, and a failover may lose what had not reached the replica.
Result<Exit> read_redis_exit(const BizType& type, const GuardPtr& guard);

}  // namespace tocsin
