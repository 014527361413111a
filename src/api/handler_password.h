// Hides passwords of brokers when a type is shown, and restores them when it is put back. A handler object has one
// password at most: in its field `password`, or in its field `url`. Thread: any.
#pragma once

#include <optional>
#include <string>

#include "api/problem.h"
#include "ports/biz_type.h"

namespace tocsin {

// The handler object with *** instead of its password; unchanged if it has none.
std::string with_hidden_password(const std::string& handler_json);

// Replaces a hidden password (***) in the handler of a type that a PUT sends by that of `stored`, the type of this name
// in the registry (null: there is none). Returns nullopt: replaced, or nothing was hidden; or the problem (400): none
// is stored, or user, address, protocol or login mechanism differ: an admin who does not know the password could
// otherwise have it sent to another host, or unencrypted.
std::optional<Problem> restore_password(BizType& type, const BizType* stored);

}  // namespace tocsin
