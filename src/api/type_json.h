// The only translation between a BizType and its JSON, for the handlers of /v1/types. Thread: any.
#pragma once

#include <optional>
#include <string>

#include "api/json.h"
#include "api/json_writer.h"
#include "ports/biz_type.h"

namespace tocsin {

// Shown in place of a secret. In the body of a PUT it stands for the stored secret.
inline constexpr std::string_view kHiddenSecret = "whsec_***";
// The same for the value of a header.
inline constexpr std::string_view kHiddenHeader = "***";

inline constexpr std::int64_t kMaxTtrMs = 7LL * 24 * 3600 * 1000;  // the longest lease

// Who gets the answer. Headers often carry credentials, so only managers (callers with Access::manage) see their
// values. Secrets and passwords are never shown.
enum class Reader { anyone, manager };

// Writes the type with defaults filled in, secrets and passwords hidden. A pause whose paused_until has passed is not
// shown.
void write_type(JsonWriter& out, const BizType& type, WallTime now, Reader reader);
std::string type_text(const BizType& type, WallTime now, Reader reader);

// 1..128 bytes of [A-Za-z0-9_.:-]; not "." or "..", which clients resolve in a path.
bool is_type_name(std::string_view name);

// Reads the body of a PUT of the type `name`; mistakes go to in.problem(). Fields that only answers have (name, paused,
// ...) are accepted, so that a type can be read, edited and put back. `paused`: set to the body's value; the caller
// must refuse one that differs from the stored state, because a PUT does not change that. type.handler_json keeps the
// hidden values as they were sent.
BizType read_type(JsonObject& in, const std::string& name, std::optional<bool>& paused);

// Replaces hidden secrets in the handler object by those of `stored` (null: a new type): the n-th that is hidden by the
// n-th that is stored. False: `stored` has fewer. Passwords of brokers: handler_password.h.
bool restore_secrets(BizType& type, const BizType* stored);
// Replaces hidden values of headers by those of `stored` (null: a new type), by name. nullopt: well; or the first name
// that has no stored value.
std::optional<std::string> restore_headers(BizType& type, const BizType* stored);

}  // namespace tocsin
