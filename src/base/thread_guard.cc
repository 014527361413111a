#include "base/thread_guard.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace tocsin {
namespace {

void say_on_standard_error(const char* thread, const char* why) {
  std::fprintf(stderr, "tocsin: thread %s ends: %s\n", thread, why);
}

std::atomic<LastWords> last_words{say_on_standard_error};

}  // namespace

void set_last_words(LastWords say) { last_words = say; }

void name_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

void end_with_last_words(const char* thread, const char* why) {
  last_words.load()(thread, why);
  std::abort();
}

}  // namespace tocsin
