// The version of this source; CMakeLists.txt says the same.
#pragma once

namespace tocsin {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace tocsin
