// Tells AddressSanitizer which stack runs: without it, unwinding on a fiber's stack looks like damage. Nothing without
// the sanitizer.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TOCSIN_WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOCSIN_WITH_ASAN 1
#endif
#endif

#ifdef TOCSIN_WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace tocsin {

struct Stack {
  const void* bottom = nullptr;
  std::size_t size = 0;
};

// Before a jump to `next`. `own_state` keeps what belongs to the stack that is left; nullptr: it is left for good.
inline void before_switch([[maybe_unused]] void** own_state, [[maybe_unused]] const Stack& next) {
#ifdef TOCSIN_WITH_ASAN
  __sanitizer_start_switch_fiber(own_state, next.bottom, next.size);
#endif
}

// After the jump has arrived. `previous`: the stack it came from, for callers that need it.
inline void after_switch([[maybe_unused]] void* own_state, [[maybe_unused]] Stack* previous) {
#ifdef TOCSIN_WITH_ASAN
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(own_state, &bottom, &size);
  if (previous) *previous = {bottom, size};
#endif
}

}  // namespace tocsin
