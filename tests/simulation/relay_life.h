// run_relay_life(): simulates one life of an installation whose SQL callers create jobs in one database for shards of
// another. It runs the real OutboxRelay of two or three nodes on databases in memory. Nodes die, calls fail, take
// effect late or lose their answers, and failovers lose what relays did last in an outbox, as the seed decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/fake_outbox.h"

namespace tocsin {

struct RelayLifeReport {
  std::vector<std::string> failures;  // broken promises; empty: none
  std::size_t jobs = 0, cancelled = 0, rescheduled = 0, killed = 0, lost = 0;
  std::uint64_t faults = 0;
};

RelayLifeReport run_relay_life(std::uint64_t seed, const FakeOutboxBugs& bugs = {}, bool is_printed = false);

}  // namespace tocsin
