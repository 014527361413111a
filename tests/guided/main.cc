// The entry points that libFuzzer calls (https://llvm.org/docs/LibFuzzer.html). It keeps inputs that reach new code,
// and changes them further. Half of the changes are its own, half those of the seeded tests, which know the grammar.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fuzz/mutator.h"
#include "guided/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

const tocsin::GuidedTarget& target() {
  // Never destroyed: threads of a target may run until the process ends.
  static const auto& only = *new tocsin::GuidedTarget(tocsin::guided_target());
  return only;
}

std::string text_of(const std::uint8_t* data, std::size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  testing::InitGoogleTest();
  GTEST_FLAG_SET(throw_on_failure, true);  // ends the process, and libFuzzer keeps the input
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target().check(text_of(data, size));
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  tocsin::Mutator mutator(seed);
  const bool begins_anew = size <= 1 || mutator.below(200) == 0;
  if (!begins_anew && mutator.below(2) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text = begins_anew ? mutator.any_of(target().seeds) : text_of(data, size);
  text = mutator.mutate(std::move(text), target().spice);
  text.resize(std::min(text.size(), max_size));
  std::ranges::copy(text, data);
  return text.size();
}
