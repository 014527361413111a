// Who lives in one simulated world: databases, nodes, callers and the checker, as a seed draws them.
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
  ~World() { scheduler.kill_all(); }  // before what they stand on goes

  Duration up_to(Duration most) { return Duration(random.below(static_cast<std::uint64_t>(most.count()) + 1)); }
  bool chance(double p) { return random.unit() < p; }
  SimDatabase& any_database() { return databases.at(static_cast<DatabaseId>(random.below(databases.size()))); }
  SimNode& any_node() { return *nodes[random.below(nodes.size())]; }
  void pass(Duration time) { scheduler.run_until(scheduler.now() + time); }
  // Within which every lane is scanned: a lone node that hears notifications rests.
  Duration longest_scan_interval() const {
    const auto members = std::ranges::count_if(nodes, [](const auto& node) { return node->reaches_control(); });
    return (context.hears_notifications && members == 1 ? 2 : 1) * config.scan_interval;
  }
  // From a change of the members until each has its part of the shards and scans it.
  Duration balanced_within() const {
    return is_shared ? 2 * ClusterConfig{}.timeout + std::chrono::seconds(2) : std::chrono::seconds(3);
  }
  // From now on no outage is under way.
  void begin_quiet(Duration settles);
  bool is_sound() const { return checker.failures().empty(); }
  BizType& add_type(const std::string& name, const std::string& kind, Duration ttr);
  // Publishes the types to all nodes.
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
  bool is_shared = false;  // the shard map says who scans what; otherwise each node believes that it owns every shard
  std::unique_ptr<Callers> callers;
  std::unique_ptr<Consumers> consumers;  // null: no type is pulled

 private:
  std::vector<DatabaseId> draw_database_ids();
  void draw_config();
  void draw_types();
  void draw_nodes();
};

}  // namespace tocsin
