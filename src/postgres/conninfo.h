// Reads and removes passwords in connection strings. A shard move stores a connection string in the target's server (in
// its subscription), where superusers can read it. Used by ShardMover (multidb/shard_mover.h). These functions contact
// no database. Thread: any.
#pragma once

#include <string>

#include "tocsin/error.h"

namespace tocsin {

// Whether the text has the keyword password or sslpassword. (A passfile, a service or a client certificate does not
// count.) Error invalid: not a connection string.
Result<bool> has_password(const std::string& url);

// Returns the same destination as keyword=value text, without password and sslpassword. `passfile`: path of a password
// file on the machine that will connect; it replaces the passfile of the text. Empty: the text's passfile stays. Error
// invalid: not a connection string.
Result<std::string> without_password(const std::string& url, const std::string& passfile);

}  // namespace tocsin
