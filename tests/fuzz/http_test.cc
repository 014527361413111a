// The HTTP server under bytes that are almost requests: whatever comes, every connection ends, and the server serves
// on.
#include "fuzz/http_check.h"
#include "fuzz/mutator.h"

namespace tocsin {
namespace {

TEST_F(HttpServerTest, KeepsServingAfterMalformedInput) {
  start();
  const auto [first, last] = fuzz_seeds(5'000);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Mutator mutator(seed);
    check_http(client(), mutator.mutate(mutator.any_of(kHttpRequests), kHttpSpice), "seed " + std::to_string(seed));
    ASSERT_FALSE(HasFatalFailure());
    if (seed % 100 == 0) {
      ASSERT_EQ(once(kGet).first, 200) << "seed " << seed;
    }
  }
  EXPECT_EQ(once(kGet).first, 200);
}

}  // namespace
}  // namespace tocsin
