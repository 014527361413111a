#include "simulation/world.h"

#include <algorithm>

namespace tocsin {

using namespace std::chrono_literals;

World::World(std::uint64_t seed, const LifeOptions& options)
    : random(seed),
      scheduler(seed ^ 0x5eed),
      trace(options.is_printed),
      databases(draw_database_ids(), scheduler, random, trace),
      checker(scheduler, trace, databases, options.may_lose),
      has_functions(Random(seed ^ (std::uint64_t{5} << 32)).unit() < 0.3) {
  context.business = any_business(options.function_bugs);
  for (SimDatabase& database : databases) {
    database.data.bugs = options.bugs;
    database.data.writer_lag = chance(0.5) ? Duration(0) : up_to(10s);
    if (chance(0.5)) database.wall.set_drift((random.unit() - 0.5) * 1e-3);  // as far as ntpd slews: +-500 ppm
    if (chance(0.5)) database.wall.step(up_to(2s) - 1s);                     // no two clocks agree
  }
  draw_config();
  draw_types();
  draw_nodes();
}

// A few shards, and up to three databases.
std::vector<DatabaseId> World::draw_database_ids() {
  const std::uint64_t n = 1 + random.below(3);
  std::vector<DatabaseId> database_ids;
  for (std::uint64_t shard = 0; shard < 3 + n; ++shard) database_ids.push_back(static_cast<DatabaseId>(shard % n));
  return database_ids;
}

// Small, so that every bound is reached.
void World::draw_config() {
  config.sweep_interval = 8s;
  config.audit_interval = 12s;
  config.late_commit_margin = 2s;
  config.async_claims = chance(0.15) && !has_functions;  // so that crashes take no time (Troubles::shortest_crash)
  config.capacity = 16 + random.below(48);
  config.window_page = 2 + random.below(12);
  config.overdue_page = 2 + random.below(8);
  config.many_rows = 1 + random.below(20);
  context.hears_notifications = chance(0.5);
  context.has_foreign_writer = chance(0.3);
  config.claim_batch = 1 + random.below(10);
  config.hot_above = 1 + random.below(6);
  config.finish_batch = 1 + random.below(10);
  config.max_running = 4 + random.below(16);
}

BizType& World::add_type(const std::string& name, const std::string& kind, Duration ttr) {
  BizType& type = types.emplace_back();
  type.type_id = static_cast<TypeId>(types.size());
  type.name = name;
  type.handler_kind = kind;
  type.ttr = ttr;
  type.backoff = {Duration(50'000 + random.below(1'000'000)), 2, 4s, 0.2, {}};
  return type;
}

void World::draw_types() {
  types.reserve(64);  // consumers point to them
  add_type("instant", "noop", 5s);
  add_type("steady", "sim", 2s + up_to(20s));
  add_type("hasty", "sim", 30ms + up_to(800ms)).max_running = 1 + static_cast<int>(random.below(4));
  if (chance(0.5)) add_type("second.instant", "noop", 5s);
  if (chance(0.5))
    add_type("paced", chance(0.5) ? "noop" : "sim", 5s).rate_per_s = 8 + static_cast<double>(random.below(12));
  if (chance(0.5)) {
    constexpr const char* kKinds[] = {"noop", "sim", "pull"};
    BizType& catching_up = add_type("catching.up", kKinds[random.below(3)], 5s);
    catching_up.catch_up_rate_per_s = 8 + static_cast<double>(random.below(12));
    if (chance(0.5)) catching_up.drop_older_than = 15s + up_to(20s);
  }
  if (chance(0.5)) {
    BizType& perishable = add_type("perishable", chance(0.5) ? "noop" : "sim", 2s);
    perishable.drop_older_than = 2s + up_to(10s);
    if (chance(0.5)) perishable.rate_per_s = 4 + static_cast<double>(random.below(4));
  }
  if (chance(0.6)) {
    BizType& pulled = add_type("pulled", "pull", 300ms + up_to(6s));
    if (chance(0.5)) pulled.max_running = 1 + static_cast<int>(random.below(5));
    if (chance(0.3)) pulled.rate_per_s = 8 + static_cast<double>(random.below(12));
    if (chance(0.3)) pulled.drop_older_than = 2s + up_to(10s);
  }
  if (has_functions) add_type("posted", "sql", 1s + up_to(5s));
  databases.control().data.permits.total_of = [this](TypeId id, Limit limit) {
    return permits_of(types[static_cast<std::size_t>(id - 1)], limit);
  };
  publish_types();
}

void World::draw_nodes() {
  const int n = 1 + static_cast<int>(random.below(3));
  is_shared = chance(0.7);
  context.has_rivals = !is_shared && n > 1;
  databases.control().data.members.on_notify = [this] {
    for (const auto& node : nodes)
      if (checker.is_calm() || !chance(0.1)) node->members_changed();
  };
  std::vector<SimNode*> all;
  for (int i = 0; i < n; ++i) {
    config.node = "node-" + std::to_string(i);
    nodes.push_back(std::make_unique<SimNode>(context, config.node, config,
                                              is_shared ? Ownership::shared : Ownership::everything,
                                              1 + static_cast<int>(random.below(2))));
    all.push_back(nodes.back().get());
  }
  const auto node_of = [this](const std::string& name) -> const SimNode& {
    return **std::ranges::find(nodes, name, [](const auto& each) { return each->name(); });
  };
  checker.ask_of_limits([=](const std::string& node, const BizType& type) { return node_of(node).admits(type); });
  checker.ask_of_memory([=](const std::string& node, JobId job) {
    const SimNode& its = node_of(node);
    return its.keeps(job) || !its.has_refused_lately();
  });
  std::vector<TypeId> ids, prompt;
  for (const BizType& type : types) {
    ids.push_back(type.type_id);
    if (!type.is_limited() && !type.is_pull()) prompt.push_back(type.type_id);
  }
  callers = std::make_unique<Callers>(context, all, ids, prompt, config.lookahead);
  std::vector<const BizType*> pulled;
  for (const BizType& type : types)
    if (type.is_pull()) pulled.push_back(&type);
  if (!pulled.empty()) consumers = std::make_unique<Consumers>(context, all, pulled);
}

void World::begin_quiet(Duration settles) {
  constexpr std::size_t kClaimers = 3;
  checker.quiet_begins({scheduler.now() + settles, 2 * config.claim_batch * kClaimers * nodes.size(),
                        config.claim_batch, config.max_running, nodes.size() == 1 && databases.size() == 1});
}

void World::publish_types() {
  catalog = std::make_shared<const TypeCatalog>(types);
  for (SimDatabase& database : databases) database.data.mirror_types(types);
  for (const auto& node : nodes)
    if (node->is_up()) node->set_catalog(catalog);
  checker.on_types(types, PermitConfig{}.ttl + 6s);
}

}  // namespace tocsin
