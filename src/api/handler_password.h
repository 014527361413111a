// Hides and restores passwords of brokers in handler objects: in the field `password`, or in the URL.
#pragma once

#include <optional>
#include <string>

#include "api/problem.h"
#include "ports/biz_type.h"

namespace tocsin {

// The handler object with *** in the place of its password; unchanged if it has none.
std::string with_hidden_password(const std::string& handler_json);

// Replaces a hidden password (***) in the handler object by that of `stored` (null: there is none), but only if user,
// address, protocol and login mechanism are the same: otherwise the author of a type could have a password that he does
// not know sent to a host of his own, or unencrypted. Returns the problem, or nullopt: replaced, or nothing hidden.
std::optional<Problem> restore_password(BizType& type, const BizType* stored);

}  // namespace tocsin
