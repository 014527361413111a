// What stands at the top of every thread of the node.
#pragma once

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <exception>

namespace tocsin {

// An exception that got this far is a bug, and a thread that is missing is worse than a process that is: says so and
// ends it. What was claimed comes back when its lease ends.
template <class Work>
void or_abort(const char* thread, const Work& work) {
  try {
    work();
  } catch (const std::exception& e) {
    spdlog::critical("thread {} ends: {}", thread, e.what());
    std::abort();
  } catch (...) {
    spdlog::critical("thread {} ends: unknown exception", thread);
    std::abort();
  }
}

}  // namespace tocsin
