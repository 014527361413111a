// A bug is not an error to handle: stop before it does damage. On in release too.
#pragma once

namespace tocsin {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace tocsin

#define TOCSIN_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::tocsin::assertion_failed(#condition, __FILE__, __LINE__))
