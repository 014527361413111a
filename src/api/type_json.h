// The only translation between a BizType and its JSON.
#pragma once

#include <optional>
#include <string>

#include "api/json.h"
#include "api/json_writer.h"
#include "ports/biz_type.h"

namespace tocsin {

inline constexpr std::string_view kHiddenSecret =
    "whsec_***";  // shown in place of a secret; put back, it keeps the stored one

inline constexpr std::int64_t kMaxTtrMs = 7LL * 24 * 3600 * 1000;  // the longest lease

inline constexpr std::string_view kHiddenHeader =
    "***";  // in place of a header's value; put back, it keeps the stored one

// Headers often carry credentials: only who may write types sees their values.
enum class Reader { anyone, manager };

// With defaults filled in and secrets hidden.
// A pause that has ended by itself is none.
void write_type(JsonWriter& out, const BizType& type, WallTime now, Reader reader);
std::string type_text(const BizType& type, WallTime now, Reader reader);

// 1..128 bytes of [A-Za-z0-9_.:-]; not "." or "..", which mean something else in a path.
bool is_type_name(std::string_view name);

// What a put asks for. Fields that only replies have (name, paused, ...) are let pass, so that a type can be read,
// edited and put back. `paused`: what it says of that, which a put cannot change.
BizType read_type(JsonObject& in, const std::string& name, std::optional<bool>& paused);

// Hidden secrets in a handler object stand for those of `stored`, the first for the first. False: there are not so
// many.
bool restore_secrets(BizType& type, const BizType* stored);
// Likewise hidden values of headers, by their names. Returns the first for which nothing is stored.
std::optional<std::string> restore_headers(BizType& type, const BizType* stored);

}  // namespace tocsin
