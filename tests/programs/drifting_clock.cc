// Preloaded into a program: its monotonic clock runs TOCSIN_DRIFT_PPM millionths faster than the machine's, and its
// real-time clock is set forward by TOCSIN_STEP_MS and back again, once in TOCSIN_STEP_EVERY_MS: at the same moments in
// all processes. The times that its condition variables wait for are translated back, so that waits end on time by its
// own clock.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }
timespec time_of(std::int64_t ns) { return {ns / kSecond, ns % kSecond}; }

int machine_time(clockid_t clock, timespec* time) {
  static auto* const original = next<int(clockid_t, timespec*)>("clock_gettime");
  return original(clock, time);
}

// Both clocks showed the same at the first look.
struct Drift {
  Drift() {
    timespec now{};
    machine_time(CLOCK_MONOTONIC, &now);
    begin = nanoseconds(now);
    if (const char* ppm = std::getenv("TOCSIN_DRIFT_PPM")) rate = std::strtod(ppm, nullptr) / 1e6;
  }
  std::int64_t of_program(std::int64_t machine) const { return begin + scaled(machine - begin, 1 + rate); }
  std::int64_t of_machine(std::int64_t program) const { return begin + scaled(program - begin, 1 / (1 + rate)); }

 private:
  static std::int64_t scaled(std::int64_t length, double by) {
    return static_cast<std::int64_t>(static_cast<double>(length) * by);
  }
  std::int64_t begin = 0;
  double rate = 0;
};

const Drift& drift() {
  static const Drift its;
  return its;
}

// How far the real-time clock is ahead now, in nanoseconds.
std::int64_t step() {
  const auto setting = [](const char* name) {
    const char* const text = std::getenv(name);
    return (text ? std::strtoll(text, nullptr, 10) : 0) * 1'000'000;
  };
  static const std::int64_t size = setting("TOCSIN_STEP_MS"), every = setting("TOCSIN_STEP_EVERY_MS");
  if (size == 0 || every == 0) return 0;
  timespec now{};
  machine_time(CLOCK_MONOTONIC, &now);
  return nanoseconds(now) / every % 2 * size;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int failed = machine_time(clock, time);
  if (failed == 0 && clock == CLOCK_MONOTONIC) *time = time_of(drift().of_program(nanoseconds(*time)));
  if (failed == 0 && clock == CLOCK_REALTIME) *time = time_of(nanoseconds(*time) + step());
  return failed;
}

// PostgreSQL reads this one.
extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int failed = clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return failed;
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* changed, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* end) {
  using Wait = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static auto* const original = next<Wait>("pthread_cond_clockwait");
  timespec until = *end;
  if (clock == CLOCK_MONOTONIC) until = time_of(drift().of_machine(nanoseconds(*end)));
  return original(changed, mutex, clock, &until);
}
