#include "bench/lanes.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace tocsin::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// `take` hands out the next chunk, or says that there is none.
double run(int lanes, const std::function<Work()>& make_work, const std::function<bool(std::size_t&)>& take) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<bool> has_failed = false;
  std::latch is_ready(lanes + 1);
  SteadyClock::time_point start;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < lanes; ++i) {
      threads.emplace_back([&] {
        bool has_arrived = false;
        try {
          const Work work = make_work();
          has_arrived = true;
          is_ready.arrive_and_wait();
          for (std::size_t chunk = 0; !has_failed && take(chunk);) work(chunk);
        } catch (...) {
          const std::scoped_lock lock(mutex);
          if (!failure) failure = std::current_exception();
          has_failed = true;
          if (!has_arrived) is_ready.count_down();
        }
      });
    }
    is_ready.arrive_and_wait();
    start = SteadyClock::now();
  }
  if (failure) std::rethrow_exception(failure);
  return seconds_since(start);
}

}  // namespace

double run_lanes(int lanes, std::size_t chunks, const std::function<Work()>& make_work) {
  std::atomic<std::size_t> next = 0;
  return run(lanes, make_work, [&](std::size_t& chunk) { return (chunk = next++) < chunks; });
}

double rate_of_lanes(int lanes, double seconds, const std::function<Work()>& make_work) {
  std::atomic<std::size_t> next = 0;
  SteadyClock::time_point end;
  std::once_flag once;
  const double took = run(lanes, make_work, [&](std::size_t& chunk) {
    std::call_once(once, [&] {
      end = SteadyClock::now() +
            std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
    });
    if (SteadyClock::now() >= end) return false;
    chunk = next++;
    return true;
  });
  return static_cast<double>(next) / took;
}

}  // namespace tocsin::bench
