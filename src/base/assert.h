// TOCSIN_ASSERT(condition): ends the process with a message when the condition is false. For bugs only, in release
// builds too; failures of the environment are Errors (tocsin/error.h).
#pragma once

namespace tocsin {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace tocsin

#define TOCSIN_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::tocsin::assertion_failed(#condition, __FILE__, __LINE__))
