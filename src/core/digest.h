// SHA-256 as text: makes ids and keys of bounded length out of any bytes, for messages of brokers. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace tocsin {

// The digest of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace tocsin
