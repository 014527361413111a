// World: everything in one simulated life: databases, nodes, callers, consumers, types, and the checker of promises.
// Its seed draws them. Made by run_life().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/callers.h"
#include "simulation/consumers.h"
#include "simulation/life.h"

namespace tocsin {

// Thread: owner only.
class World {
 public:
  World(std::uint64_t seed, const LifeOptions& options);
  ~World() { scheduler.kill_all(); }  // first: fibers use the other members

  Duration up_to(Duration most) { return Duration(random.below(static_cast<std::uint64_t>(most.count()) + 1)); }
  bool chance(double p) { return random.unit() < p; }
  SimDatabase& any_database() { return databases.at(static_cast<DatabaseId>(random.below(databases.size()))); }
  SimNode& any_node() { return *nodes[random.below(nodes.size())]; }
  void pass(Duration time) { scheduler.run_until(scheduler.now() + time); }
  // Every lane (the jobs of one type in one shard) is scanned within this time. It is doubled for a sole member that
  // hears notifications, because that one scans less often.
  Duration longest_scan_interval() const {
    const auto members = std::ranges::count_if(nodes, [](const auto& node) { return node->reaches_control(); });
    return (context.hears_notifications && members == 1 ? 2 : 1) * config.scan_interval;
  }
  // After the members have changed, each node owns its part of the shards and scans it within this time.
  Duration balanced_within() const {
    return is_shared ? 2 * ClusterConfig{}.timeout + std::chrono::seconds(2) : std::chrono::seconds(3);
  }
  // Tells the checker that no outage is under way from now on. Promises that need that hold after `settles`.
  void begin_quiet(Duration settles);
  bool is_sound() const { return checker.failures().empty(); }
  BizType& add_type(const std::string& name, const std::string& kind, Duration ttr);
  // Gives `types` to all nodes.
  void publish_types();

  Random random;
  Scheduler scheduler;
  Trace trace;
  SimDatabases databases;
  Checker checker;
  SimContext context{scheduler, random, trace, databases, checker};
  EngineConfig config;
  std::vector<BizType> types;
  std::shared_ptr<const TypeCatalog> catalog;
  std::vector<std::unique_ptr<SimNode>> nodes;
  // Types of kind `sql` are there. Drawn apart from all else, so that lives without them are the same as before.
  const bool has_functions;
  bool is_shared = false;  // the shard map says who scans what; otherwise each node believes that it owns every shard
  std::unique_ptr<Callers> callers;
  std::unique_ptr<Consumers> consumers;  // null: there is no pull type

 private:
  std::vector<DatabaseId> draw_database_ids();
  void draw_config();
  void draw_types();
  void draw_nodes();
};

}  // namespace tocsin
