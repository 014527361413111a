// A target of the guided fuzzer: what libFuzzer (guided/main.cc) tries, and what must hold of it. Each program defines
// guided_target() for one kind of input, with the seeds and the check of its test in tests/fuzz.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin {

struct GuidedTarget {
  std::vector<std::string> seeds;                       // valid inputs
  std::vector<std::string> spice;                       // put into inputs, as Mutator::mutate() does
  std::function<void(const std::string& input)> check;  // fails as a test does
};

GuidedTarget guided_target();

// Inputs of several texts are one text with this between them.
inline constexpr char kBetweenTexts = '\x1f';

// The text before the first separator, and the rest; the rest is empty without one.
inline std::pair<std::string, std::string> split_input(std::string_view input) {
  const std::size_t at = input.find(kBetweenTexts);
  if (at == input.npos) return {std::string(input), ""};
  return {std::string(input.substr(0, at)), std::string(input.substr(at + 1))};
}

}  // namespace tocsin
