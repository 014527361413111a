// Redis streams as exit topics: reads the settings of a handler of kind `redis`.
#pragma once

#include "broker/broker_kind.h"

namespace tocsin {

// Settings of a handler: url (redis://user:password@host:port/database), stream (the name of the type by default),
// maxlen (the stream is trimmed to about this number of entries; never by default). Error invalid with the field at
// fault.
//
// Done means that the server has answered the XADD: the entry is in its memory. Whether it survives a crash is the
// server's setting: with `appendonly yes` and `appendfsync always` it is on disk, with `everysec` up to a second may be
// lost, and a failover may lose what had not reached the replica.
Result<Exit> read_redis_exit(const BizType& type, const GuardPtr& guard);

}  // namespace tocsin
