// The reader of JSON beside another one.
#include "fuzz/json_check.h"
#include "fuzz/mutator.h"

namespace tocsin {
namespace {

void try_json(std::uint64_t seed) {
  Mutator mutator(seed);
  check_json(mutator.mutate(mutator.any_of(kJsonSeeds), kJsonSpice), "seed " + std::to_string(seed));
}

TEST(JsonFuzz, AgreesWithAnotherParser) {
  const auto [first, last] = fuzz_seeds(200'000);
  for (std::uint64_t seed = first; seed <= last && !HasFatalFailure(); ++seed) try_json(seed);
}

}  // namespace
}  // namespace tocsin
