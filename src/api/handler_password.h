// Hides the password of a broker when a type is shown, and restores it when the type is put back. A handler object has
// at most one password: in its field `password`, or in its field `url`. Used by the handlers of /v1/types. Thread: any.
#pragma once

#include <optional>
#include <string>

#include "api/problem.h"
#include "ports/biz_type.h"

namespace tocsin {

// The handler object with *** instead of its password; unchanged if it has none.
std::string with_hidden_password(const std::string& handler_json);

// Replaces a hidden password (***) in `type`, which a PUT sends, by the password of `stored`, the type of this name in
// the registry (nullptr: there is none). nullopt: replaced, or no password was hidden. Problem (400): no password is
// stored; or user, address, protocol or login mechanism differ, because an admin who does not know the password must
// not have it sent to another host, or unencrypted.
std::optional<Problem> restore_password(BizType& type, const BizType* stored);

}  // namespace tocsin
