#include "simulation/life.h"

#include "simulation/ending.h"
#include "simulation/troubles.h"

namespace tocsin {

LifeReport run_life(std::uint64_t seed, const LifeOptions& options) {
  World world(seed, options);
  Troubles troubles(world);
  troubles.begin();
  for (const auto& node : world.nodes) troubles.boot(*node);
  world.callers->begin(2 + static_cast<int>(world.random.below(4)), troubles.last_end() - std::chrono::seconds(1));
  if (world.consumers) world.consumers->begin(2 + static_cast<int>(world.random.below(4)));
  world.scheduler.run_until(troubles.end());
  if (troubles.has_lull() && world.is_sound()) {
    troubles.lull();
    world.scheduler.run_until(troubles.end());
  }
  if (world.is_sound()) troubles.end_all();
  if (world.is_sound()) Ending(world).run();

  LifeReport report{world.checker.failures(), world.trace.hash(),     world.scheduler.events(), 0,
                    world.checker.created(),  world.checker.starts(), world.checker.losses(),   {}};
  for (const SimDatabase& database : world.databases) report.faults += database.faults.injected();
  for (const auto& node : world.nodes)
    for (std::size_t i = 0; i < report.counters.size(); ++i) report.counters[i] += node->counters()[i];
  return report;
}

}  // namespace tocsin
