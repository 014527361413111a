// SHA-256 as text.
#pragma once

#include <string>
#include <string_view>

namespace tocsin {

std::string sha256_hex(std::string_view bytes);  // 64 digits

}  // namespace tocsin
