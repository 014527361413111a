// The version of this source.
#pragma once

namespace tocsin {

inline constexpr const char* kVersion = "0.1.0";  // CMakeLists.txt reads this line; keep its form

}  // namespace tocsin
