// Connection strings without their passwords, to be stored where others may read them (subscriptions of shard moves).
#pragma once

#include <string>

#include "tocsin/error.h"

namespace tocsin {

// Whether the text itself holds a password (a passfile, a service or a client certificate is none).
// Error invalid: not a connection string.
Result<bool> has_password(const std::string& url);

// The same destination as keyword=value text without passwords. `passfile`: a password file on the machine that will
// connect, to be named in it; empty: none. Error invalid: not a connection string.
Result<std::string> without_password(const std::string& url, const std::string& passfile);

}  // namespace tocsin
