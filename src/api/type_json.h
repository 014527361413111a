// The only translation between a BizType and its JSON.
#pragma once

#include <string>

#include "api/json.h"
#include "api/json_writer.h"
#include "tocsin/biz_type.h"

namespace tocsin {

inline constexpr std::string_view kHiddenSecret =
    "whsec_***";  // shown in place of a secret; put back, it keeps the stored one

inline constexpr std::int64_t kMaxTtrMs = 7LL * 24 * 3600 * 1000;  // the longest lease

// With defaults filled in and secrets hidden.
// A pause that has ended by itself is none.
void write_type(JsonWriter& out, const BizType& type, WallTime now);
std::string type_text(const BizType& type, WallTime now);

// 1..128 bytes of [A-Za-z0-9_.:-].
bool is_type_name(std::string_view name);

// What a put asks for. Fields that only replies have (name, paused, ...) are let pass, so that a type can be read,
// edited and put back.
BizType read_type(JsonObject& in, const std::string& name);

// Hidden secrets in a handler object stand for those of `stored`, the first for the first. False: there are not so
// many.
bool restore_secrets(BizType& type, const BizType* stored);

}  // namespace tocsin
