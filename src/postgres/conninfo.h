// Connection strings without their passwords, to be stored where others may read them (subscriptions of shard moves).
#pragma once

#include <string>

#include "tocsin/error.h"

namespace tocsin {

// Whether it holds a password itself (passfile, service and client certificates are no passwords).
// Error invalid: not a connection string.
Result<bool> has_password(const std::string& url);

// The same destination as keyword=value text without the password; with `passfile` unless it is empty: a file on the
// machine that connects. Error invalid: not a connection string.
Result<std::string> without_password(const std::string& url, const std::string& passfile);

}  // namespace tocsin
