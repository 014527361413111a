// Configurations that are almost right.
#include "fuzz/config_check.h"
#include "fuzz/mutator.h"

namespace tocsin {
namespace {

void try_config(std::uint64_t seed) {
  Mutator mutator(seed);
  const std::string file = mutator.mutate(mutator.any_of(kConfigFiles), kConfigSpice);
  const std::string variable =
      mutator.below(2) == 0 ? "" : mutator.mutate(mutator.any_of(kConfigVariables), kConfigSpice);
  check_config(file, variable, "seed " + std::to_string(seed));
}

TEST(ConfigFuzz, AConfigurationIsAcceptedOrRefusedWithAReason) {
  const auto [first, last] = fuzz_seeds(5'000);
  for (std::uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) try_config(seed);
}

}  // namespace
}  // namespace tocsin
