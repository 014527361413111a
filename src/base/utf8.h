// Checks and repairs UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. NUL is
// valid. Thread: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tocsin {

// Length in bytes of the sequence at the start of `text`, 1..4; 0 if it is invalid or `text` is empty.
std::size_t utf8_sequence(std::string_view text);

bool is_utf8(std::string_view text);

// Makes text from outside (handlers, brokers) one that PostgreSQL accepts: its longest prefix of at most `most` bytes,
// cut between characters, with '?' for each NUL or invalid byte.
std::string storable(std::string_view text, std::size_t most);

}  // namespace tocsin
