// Seeded changes of valid texts. The same seed makes the same text on every machine.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin {

// How many texts a test tries: `usual`, or TOCSIN_FUZZ_RUNS.
inline int fuzz_runs(int usual) {
  const char* runs = std::getenv("TOCSIN_FUZZ_RUNS");
  return runs == nullptr ? usual : std::atoi(runs);
}

// The first and the last seed: fuzz_runs() from TOCSIN_FUZZ_FIRST on (1), or TOCSIN_FUZZ_SEED alone.
inline std::pair<std::uint64_t, std::uint64_t> fuzz_seeds(int usual) {
  const char *seed = std::getenv("TOCSIN_FUZZ_SEED"), *begin = std::getenv("TOCSIN_FUZZ_FIRST");
  const std::uint64_t one = std::strtoull(seed ? seed : "0", nullptr, 10);
  if (seed) return {one, one};
  const std::uint64_t first = begin ? std::strtoull(begin, nullptr, 10) : 1;
  return {first, first + static_cast<std::uint64_t>(fuzz_runs(usual)) - 1};
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // At most `n - 1`.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_()) % n; }

  template <class T>
  const T& any_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  // Up to four changes: bytes replaced, pieces cut, doubled or moved, and `spice` put in.
  std::string mutate(std::string text, const std::vector<std::string>& spice) {
    for (std::size_t n = below(5); n > 0; --n) change(text, spice);
    return text;
  }

 private:
  void change(std::string& text, const std::vector<std::string>& spice) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 24) + 1);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      case 4:
        text.insert(at, any_of(spice));
        break;
      default:
        text.replace(at, length, any_of(spice));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace tocsin
