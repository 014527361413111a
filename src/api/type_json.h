// The only translation between a BizType (the settings of a type of jobs) and its JSON, for the handlers of /v1/types.
// Thread: any.
#pragma once

#include <optional>
#include <string>

#include "api/json.h"
#include "api/json_writer.h"
#include "ports/biz_type.h"

namespace tocsin {

// Shown in place of a webhook's secret. In the body of a PUT it stands for the stored secret.
inline constexpr std::string_view kHiddenSecret = "whsec_***";
// As kHiddenSecret, for the value of a header.
inline constexpr std::string_view kHiddenHeader = "***";

inline constexpr std::int64_t kMaxTtrMs = 7LL * 24 * 3600 * 1000;  // the longest lease

// Who gets the answer. Headers often carry credentials, so only managers (callers with Access::manage) see the values
// of headers. Secrets and passwords are shown to none.
enum class Reader { anyone, manager };

// Write the type with defaults filled in, and with secrets and passwords hidden. A pause whose paused_until has passed
// at `now` is not shown.
void write_type(JsonWriter& out, const BizType& type, WallTime now, Reader reader);
std::string type_text(const BizType& type, WallTime now, Reader reader);

// Whether the name has 1..128 bytes of [A-Za-z0-9_.:-] and is neither "." nor "..", which clients resolve in a path.
bool is_type_name(std::string_view name);

// Reads the body of a PUT of the type `name`; mistakes go to in.problem(). Fields that only answers have (name, paused,
// paused_until, ...) are accepted, so that a type can be read, edited and put back. `paused`: set to the body's value;
// a PUT does not change the stored state, so the caller must refuse a value that differs from it. type.handler_json
// keeps hidden values (***) as the caller sent them.
BizType read_type(JsonObject& in, const std::string& name, std::optional<bool>& paused);

// Replaces hidden secrets in the handler object of `type` by secrets of `stored` (nullptr: a new type): the first
// hidden one by the first stored one, and so on. False: `stored` has fewer secrets. For passwords of brokers see
// handler_password.h.
bool restore_secrets(BizType& type, const BizType* stored);
// Replaces hidden values of headers by the values of the headers of the same names in `stored` (nullptr: a new type).
// nullopt: done; a name: `stored` has no value for this header.
std::optional<std::string> restore_headers(BizType& type, const BizType* stored);

}  // namespace tocsin
