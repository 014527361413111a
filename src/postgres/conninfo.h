// Passwords in connection strings. A shard move stores one in the target's server (its subscription), where superusers
// can read it. Used by ShardMover; contacts no database. Thread: any.
#pragma once

#include <string>

#include "tocsin/error.h"

namespace tocsin {

// Whether the text itself has a password or sslpassword (a passfile, a service or a client certificate is none). Error
// invalid: not a connection string.
Result<bool> has_password(const std::string& url);

// The same destination as keyword=value text without these keywords. `passfile`: path of a password file on the machine
// that will connect, named instead of the one in the text; empty: that one stays. Error invalid: not a connection
// string.
Result<std::string> without_password(const std::string& url, const std::string& passfile);

}  // namespace tocsin
