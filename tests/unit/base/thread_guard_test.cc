#include "base/thread_guard.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

namespace tocsin {
namespace {

TEST(ThreadGuardDeathTest, AnExceptionEndsTheProcessWithTheNameOfTheThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_or_abort("letters", [] { throw std::runtime_error("no stamps"); }),
               "tocsin: thread letters ends: no stamps");
  EXPECT_DEATH(run_or_abort("letters", [] { throw 7; }), "thread letters ends: unknown exception");
}

TEST(ThreadGuardDeathTest, TheLogHasTheFatalErrorOfAProgramThatHasOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto say = [](const char* thread, const char* why) { std::fprintf(stderr, "log: %s: %s", thread, why); };
  EXPECT_DEATH((set_fatal_handler(say), run_or_abort("letters", [] { throw std::runtime_error("no stamps"); })),
               "log: letters: no stamps");
}

TEST(ThreadGuard, WorkThatEndsIsLeftAlone) {
  bool has_run = false;
  run_or_abort("letters", [&] { has_run = true; });
  EXPECT_TRUE(has_run);
}

TEST(ThreadGuard, NamesTheThread) {
  std::string name(16, '\0');
  std::thread thread(
      [&] { run_or_abort("letters", [&] { pthread_getname_np(pthread_self(), name.data(), name.size()); }); });
  thread.join();
  EXPECT_STREQ(name.c_str(), "letters");
}

}  // namespace
}  // namespace tocsin
