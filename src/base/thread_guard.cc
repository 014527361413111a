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

std::atomic<FatalHandler> fatal_handler{say_on_standard_error};

}  // namespace

void set_fatal_handler(FatalHandler say) { fatal_handler = say; }

void name_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

void end_process(const char* thread, const char* why) {
  fatal_handler.load()(thread, why);
  std::abort();
}

}  // namespace tocsin
