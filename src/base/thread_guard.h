// run_or_abort(): the outermost function of every thread. It names the thread, and ends the process on an uncaught
// exception.
#pragma once

#include <exception>

namespace tocsin {

using FatalHandler = void (*)(const char* thread, const char* why);

// Sets the handler that runs before the process ends on an uncaught exception; it writes to standard error by default.
// Thread: any.
void set_fatal_handler(FatalHandler handler);

// Calls the fatal handler and aborts.
[[noreturn]] void end_process(const char* thread, const char* why);

// Sets the name of the calling thread, as `top` and debuggers show it. With more than 15 characters it has no effect.
void name_thread(const char* name);

// Runs `work`. An exception that escapes it is a bug: reports it and ends the process, because a process without one of
// its threads is worse than none. Claimed jobs become due again when their leases end.
template <class Work>
void run_or_abort(const char* thread, const Work& work) {
  name_thread(thread);
  try {
    work();
  } catch (const std::exception& e) {
    end_process(thread, e.what());
  } catch (...) {
    end_process(thread, "unknown exception");
  }
}

}  // namespace tocsin
