// Messages of entry topics that are almost right.
#include "fuzz/entry_check.h"
#include "fuzz/mutator.h"

namespace tocsin {
namespace {

const std::vector<std::string> kNames = {"m-1", "", "order-4711", std::string(300, 'x'), "\xe2\x82\xac"};

EntryMessage message_of(Mutator& mutator, WallTime now) {
  EntryMessage message;
  message.body = mutator.mutate(mutator.any_of(kMessages), kMessageSpice);
  message.id = mutator.mutate(mutator.any_of(kNames), kMessageSpice);
  message.key = mutator.mutate(mutator.any_of(kNames), kMessageSpice);
  const std::vector<std::optional<WallTime>> sent = {
      {}, now, now - std::chrono::hours(1), WallTime(), WallTime::min(), now + kMaxDelay};
  message.sent_at = mutator.any_of(sent);
  return message;
}

TEST(EntryFuzz, AMessageIsOneJobOrIsRefusedForAReason) {
  const auto [first, last] = fuzz_seeds(20'000);
  for (std::uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    Mutator mutator(seed);
    check_entry_message([&](WallTime now) { return message_of(mutator, now); }, "seed " + std::to_string(seed));
  }
}

}  // namespace
}  // namespace tocsin
