// The randomness of a node: Random, a seeded generator, so that a run can be repeated, and true_random(), which makes
// the seeds and the ids of nodes and relays. Random is not for secrets.
#pragma once

#include <cstdint>
#include <random>

namespace tocsin {

// 64 bits from the operating system. Thread: any.
inline std::uint64_t true_random() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// Thread: owner only.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t int64() { return static_cast<std::int64_t>(engine_()); }
  // [0, 1)
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  // [0, n). REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tocsin
