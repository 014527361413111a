// build_json(): parses a request body for JsonDocument (json.h), its only caller. It fills a value of nlohmann/json,
// but parses with Boost.JSON, because that parser continues after a number out of range: the error can name the field,
// and the other items of a batch are read. nlohmann's own parser stops there. Boost's also takes half the time: 1.2
// instead of 2.4 us per job of a batch.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "api/problem.h"

namespace tocsin {

// An array whose items may be wrong one by one, such as the jobs of a batch.
struct JsonItems {
  std::string_view list;                    // in: name of the array, a field of the outermost object
  std::map<std::size_t, Problem> problems;  // out: the first mistake inside an item, by the item's index
};

// Parses `text` into `root`. Returns nullopt, or the first mistake: a Problem with status 400 and the path of the
// field. After a mistake `root` is incomplete. Mistakes: text that is not JSON in UTF-8, or is followed by other text;
// a field given twice; nesting over kMaxJsonDepth; more than kMaxJsonValues values; a number outside the range of a
// double, or of over 400 characters; NUL characters and lone surrogates. Thread: any.
//
// `verbatim`: name of a field; empty: none. Its value, at any depth, becomes a string with the value as compact JSON.
// The numbers in it stay as the caller wrote them, because doubles would change them. Numbers there that would take
// over 64 KiB when written in full, or that PostgreSQL's jsonb does not take, are a mistake.
//
// `items`: nullptr, or the array whose items may be wrong. A mistake inside an item goes to items->problems, and the
// value of that item must not be used. Text that is not JSON, nesting over 1,000 levels and too many values still fail
// the whole text.
//
// The parser takes an exponent that does not fit an int for text that is not JSON. So exponents of over four digits are
// then shortened to 9999, which is out of range as well, and the text is parsed again: now the mistake names its field.
// Byte offsets in other mistakes refer to the shortened text. The parser does not say which mistake a lone surrogate
// is. So after other text that is not JSON the escapes of lone surrogates become \u0000, and the text is parsed again,
// too.
std::optional<Problem> build_json(std::string_view text, std::string_view verbatim, nlohmann::json& root,
                                  JsonItems* items = nullptr);

}  // namespace tocsin
