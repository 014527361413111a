// TOCSIN_ASSERT(condition): if the condition is false, writes it to standard error with its file and line, and aborts,
// in release builds too. For bugs only; failures of the environment are Errors (tocsin/error.h). Thread: any.
#pragma once

namespace tocsin {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace tocsin

#define TOCSIN_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::tocsin::assertion_failed(#condition, __FILE__, __LINE__))
