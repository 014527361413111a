// Checks and repairs UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tocsin {

// Length in bytes of the sequence at the start of `text`, 1..4; 0 if it is invalid or `text` is empty.
std::size_t utf8_sequence(std::string_view text);

bool is_utf8(std::string_view text);

// A prefix of at most `most` bytes that PostgreSQL accepts, cut between characters. Each NUL or invalid byte becomes
// '?'.
std::string storable(std::string_view text, std::size_t most);

}  // namespace tocsin
