// The version of this source.
#pragma once

namespace tocsin {

inline constexpr const char* kVersion = "0.1.0";  // the same as in CMakeLists.txt; a test compares them

}  // namespace tocsin
