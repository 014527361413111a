// Tells AddressSanitizer which stack runs. Without these calls it takes the unwinding of a fiber's stack for damage.
// They do nothing without the sanitizer.
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

// Call before a jump to the stack `next`. `own_state` keeps the sanitizer's data about the stack that is left; nullptr:
// that stack will not run again.
inline void before_switch([[maybe_unused]] void** own_state, [[maybe_unused]] const Stack& next) {
#ifdef TOCSIN_WITH_ASAN
  __sanitizer_start_switch_fiber(own_state, next.bottom, next.size);
#endif
}

// Call after the jump. `previous`: gets the stack that was left; may be null.
inline void after_switch([[maybe_unused]] void* own_state, [[maybe_unused]] Stack* previous) {
#ifdef TOCSIN_WITH_ASAN
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(own_state, &bottom, &size);
  if (previous) *previous = {bottom, size};
#endif
}

}  // namespace tocsin
