// Passwords of brokers in handler objects: in the field `password`, or in the URL. Nobody is shown one.
#pragma once

#include <optional>
#include <string>

#include "api/problem.h"
#include "tocsin/biz_type.h"

namespace tocsin {

// The handler object with *** in the place of its password.
std::string with_hidden_password(const std::string& handler_json);

// A hidden password in the handler object gets the one of `stored`, but only when it goes to the same user at the same
// address in the same way: nobody may send a password that he has not seen to a host of his own, or in the clear.
std::optional<Problem> restore_password(BizType& type, const BizType* stored);

}  // namespace tocsin
