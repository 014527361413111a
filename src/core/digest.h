// SHA-256 as text.
#pragma once

#include <string>
#include <string_view>

namespace tocsin {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace tocsin
