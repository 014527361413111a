// What stands at the top of every thread.
#pragma once

#include <exception>

namespace tocsin {

using LastWords = void (*)(const char* thread, const char* why);

// How it is said that a thread has met an exception: on standard error, until the program has a log. Thread: any.
void set_last_words(LastWords say);

[[noreturn]] void end_with_last_words(const char* thread, const char* why);

// What `top` and a debugger call the calling thread; no more than 15 characters.
void name_thread(const char* name);

// An exception that got this far is a bug, and a thread that is missing is worse than a process that is: says so and
// ends it. What was claimed comes back when its lease ends.
template <class Work>
void or_abort(const char* thread, const Work& work) {
  name_thread(thread);
  try {
    work();
  } catch (const std::exception& e) {
    end_with_last_words(thread, e.what());
  } catch (...) {
    end_with_last_words(thread, "unknown exception");
  }
}

}  // namespace tocsin
