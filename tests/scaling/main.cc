// What a cluster far larger than this machine would do: the real stages and membership of up to a hundred nodes under a
// virtual clock. Prints, for each size, what reaches the databases and what a change of the members costs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "cli/table.h"
#include "scaling/scaled_node.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

struct Options {
  std::vector<int> nodes = {1, 3, 10, 30, 100};
  int shards = 1024;
  std::int64_t jobs = 10'000'000;
  int seconds = 1000;
  std::uint64_t seed = 1;
  std::string json;
};

constexpr TypeId kType = 1;

class Cluster {
 public:
  Cluster(const Options& options, int nodes)
      : options_(options),
        scheduler_(options.seed),
        table_(options.shards, options.jobs, std::chrono::seconds(options.seconds), kType, options.seed),
        world_{scheduler_,
               table_,
               members_,
               statements_,
               [this](Shard shard, Duration late) { fired(shard, late); },
               catalog(),
               options.shards} {
    // Listeners hear of it a moment later.
    members_.on_notify = [this] {
      scheduler_.after(500us, [this] {
        for (auto& [id, node] : nodes_) node->members_changed();
      });
    };
    for (int i = 0; i < nodes; ++i) start();
  }
  ~Cluster() { scheduler_.kill_all(); }

  void run_to(Duration time, const std::string& what) {
    for (MonoTime now = scheduler_.now(); now < MonoTime(time); now = scheduler_.now()) {
      progress_.show(now.time_since_epoch() / 1s, options_.seconds, what);
      scheduler_.run_until(std::min(MonoTime(time), now + 1s));
    }
  }
  Duration now() const { return scheduler_.now().time_since_epoch(); }

  NodeId start() {
    const NodeId id = ++last_id_;
    nodes_.emplace(id, std::make_unique<ScaledNode>(world_, id));
    return id;
  }
  void crash(NodeId id, bool ends_session) {
    nodes_.at(id)->crash(ends_session);
    nodes_.erase(id);
  }
  void leave(NodeId id) {
    nodes_.at(id)->leave();
    scheduler_.after(2s, [this, id] {
      crash(id, true);
      members_.leave(id);
    });
  }
  NodeId oldest() const { return nodes_.begin()->first; }
  std::size_t size() const { return nodes_.size(); }
  std::vector<NodeId> owners() const { return members_.map().owners; }
  const Statements& statements() const { return statements_; }
  std::int64_t left() const { return table_.left(); }
  // Lateness of everything since the last call, in order.
  std::vector<Duration> take_lateness() {
    std::vector<Duration> all;
    all.swap(lateness_);
    std::ranges::sort(all);
    return all;
  }
  std::pair<int, int> most_and_least_shards() const {
    std::map<NodeId, int> count;
    for (const auto& [id, node] : nodes_) count[id] = 0;
    for (const NodeId owner : owners()) ++count[owner];
    const auto [least, most] = std::ranges::minmax_element(count, {}, [](const auto& entry) { return entry.second; });
    return {most->second, least->second};
  }

 private:
  static std::shared_ptr<const TypeCatalog> catalog() {
    BizType type;
    type.type_id = kType;
    type.name = "noop";
    type.handler_kind = "noop";
    type.handler_json = R"({"kind":"noop"})";
    return std::make_shared<const TypeCatalog>(std::vector{type});
  }
  void fired(Shard, Duration late) { lateness_.push_back(late); }

  const Options& options_;
  Progress progress_{"simulating"};
  Scheduler scheduler_;
  PlainTable table_;
  FakeMembers members_;
  Statements statements_;
  ScaledWorld world_;
  std::map<NodeId, std::unique_ptr<ScaledNode>> nodes_;
  NodeId last_id_ = 0;
  std::vector<Duration> lateness_;
};

double milliseconds(Duration time) { return static_cast<double>(time.count()) / 1e3; }

Duration quantile(const std::vector<Duration>& sorted, double q) {
  if (sorted.empty()) return Duration(0);
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

ordered_json steady(Cluster& cluster, int nodes) {
  cluster.run_to(20s, "settling");
  cluster.take_lateness();
  const Statements before = cluster.statements();
  constexpr double kSeconds = 60;
  cluster.run_to(80s, "steady");
  const Statements& after = cluster.statements();
  const auto rate = [](std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) / kSeconds; };
  const auto late = cluster.take_lateness();
  const auto [most, least] = cluster.most_and_least_shards();
  return {{"kind", "steady"},
          {"nodes", nodes},
          {"scans_per_s", rate(before.scans, after.scans)},
          {"ranges_per_s", rate(before.ranges, after.ranges)},
          {"fires_per_s", rate(before.fires, after.fires)},
          {"fired_per_s", rate(before.fired, after.fired)},
          {"beats_per_s", rate(before.beats, after.beats)},
          {"member_rows_per_s", rate(before.member_rows, after.member_rows)},
          {"map_writes_per_s", rate(before.map_writes, after.map_writes)},
          {"most_shards", most},
          {"least_shards", least},
          {"p50_ms", milliseconds(quantile(late, 0.5))},
          {"p99_ms", milliseconds(quantile(late, 0.99))},
          {"most_ms", milliseconds(late.back())}};
}

// `change` happens; 40 seconds later everything has settled. `least_moves`: shards that cannot stay where they are.
ordered_json disturb(Cluster& cluster, const std::string& what, const std::function<int()>& change) {
  cluster.take_lateness();
  const Duration begin = cluster.now();
  const auto before = cluster.owners();
  const Statements sent = cluster.statements();
  const int least_moves = change();
  cluster.run_to(begin + 40s, what);
  const auto after = cluster.owners();
  int moves = 0;
  for (std::size_t shard = 0; shard < after.size(); ++shard) moves += after[shard] != before[shard];
  const auto late = cluster.take_lateness();
  const auto [most, least] = cluster.most_and_least_shards();
  return {{"kind", "change"},
          {"nodes", cluster.size()},
          {"what", what},
          {"moved", moves},
          {"least_moves", least_moves},
          {"map_writes", cluster.statements().map_writes - sent.map_writes},
          {"most_shards", most},
          {"least_shards", least},
          {"takeover_ms", milliseconds(late.back())},
          {"p99_ms", milliseconds(quantile(late, 0.99))}};
}

int shards_of(const Cluster& cluster, NodeId node) {
  return static_cast<int>(std::ranges::count(cluster.owners(), node));
}

std::vector<ordered_json> simulate(const Options& options, int nodes) {
  Cluster cluster(options, nodes);
  std::vector<ordered_json> records{steady(cluster, nodes)};
  if (nodes > 1) {
    const auto kill = [&](bool ends_session) {
      const NodeId victim = cluster.oldest();
      const int shards = shards_of(cluster, victim);
      cluster.crash(victim, ends_session);
      return shards;
    };
    records.push_back(disturb(cluster, "a process is killed", [&] { return kill(true); }));
    records.push_back(disturb(cluster, "a node joins", [&] {
      cluster.start();
      return options.shards / static_cast<int>(cluster.size());
    }));
    records.push_back(disturb(cluster, "a host is gone without a word", [&] { return kill(false); }));
    cluster.start();
    cluster.run_to(cluster.now() + 20s, "settling");
    records.push_back(disturb(cluster, "a node leaves", [&] {
      const NodeId victim = cluster.oldest();
      const int shards = shards_of(cluster, victim);
      cluster.leave(victim);
      return shards;
    }));
    const int tenth = nodes / 10;
    if (tenth > 1)
      records.push_back(disturb(cluster, "a tenth is killed at once", [&] {
        int shards = 0;
        for (int i = 0; i < tenth; ++i) shards += kill(true);
        return shards;
      }));
  }
  cluster.run_to(std::chrono::seconds(options.seconds) + 10s, "to the end");
  records.push_back({{"kind", "end"}, {"nodes", nodes}, {"jobs", options.jobs}, {"not_fired", cluster.left()}});
  return records;
}

std::string text(const ordered_json& value) {
  if (!value.is_number_float()) return value.is_string() ? value.get<std::string>() : value.dump();
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, value.get<double>() < 10 ? "%.1f" : "%.0f", value.get<double>());
  return buffer;
}

void print(const std::vector<ordered_json>& records, const std::string& kind,
           const std::vector<std::pair<std::string, std::string>>& columns) {
  std::printf("|");
  for (const auto& [title, key] : columns) std::printf(" %s |", title.c_str());
  std::printf("\n|");
  for (const auto& [title, key] : columns) std::printf(key == "what" ? "---|" : "---:|");
  std::printf("\n");
  for (const ordered_json& record : records) {
    if (record["kind"] != kind) continue;
    std::printf("|");
    for (const auto& [title, key] : columns) std::printf(" %s |", text(record.at(key)).c_str());
    std::printf("\n");
  }
  std::printf("\n");
}

int run(int argc, char** argv) {
  CLI::App app("Simulates large clusters under a virtual clock.", "tocsin_scaling");
  Options options;
  app.add_option("--nodes", options.nodes, "Sizes of the cluster (1,3,10,30,100)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000))
      ->option_text("N,N");
  app.add_option("--shards", options.shards, "(1024)")->check(CLI::Range(1, kMaxShards))->option_text("N");
  app.add_option("--jobs", options.jobs, "In each cluster (10000000)")->check(CLI::PositiveNumber)->option_text("N");
  app.add_option("--seconds", options.seconds, "In which all of them are due (1000)")
      ->check(CLI::Range(400, 100'000))
      ->option_text("N");
  app.add_option("--seed", options.seed, "(1)")->option_text("N");
  app.add_option("--json", options.json, "Also write every figure there, as JSON Lines")->option_text("FILE");
  CLI11_PARSE(app, argc, argv);

  std::vector<ordered_json> records;
  for (const int nodes : options.nodes) {
    for (ordered_json& record : simulate(options, nodes)) records.push_back(std::move(record));
  }
  print(records, "steady",
        {{"nodes", "nodes"},
         {"shards, most", "most_shards"},
         {"least", "least_shards"},
         {"scans/s", "scans_per_s"},
         {"ranges/s", "ranges_per_s"},
         {"fire statements/s", "fires_per_s"},
         {"jobs/s", "fired_per_s"},
         {"heartbeats/s", "beats_per_s"},
         {"member rows/s", "member_rows_per_s"},
         {"p50 ms", "p50_ms"},
         {"p99 ms", "p99_ms"}});
  print(records, "change",
        {{"nodes then", "nodes"},
         {"what", "what"},
         {"shards moved", "moved"},
         {"least possible", "least_moves"},
         {"maps written", "map_writes"},
         {"shards, most", "most_shards"},
         {"least", "least_shards"},
         {"latest start ms", "takeover_ms"},
         {"p99 ms", "p99_ms"}});
  if (!options.json.empty()) {
    std::ofstream out(options.json);
    for (const ordered_json& record : records) out << record.dump() << '\n';
    if (!out.flush()) throw std::runtime_error("cannot write " + options.json);
  }
  const bool is_complete = std::ranges::all_of(
      records, [](const ordered_json& record) { return record["kind"] != "end" || record["not_fired"] == 0; });
  const bool is_still = std::ranges::all_of(records, [](const ordered_json& record) {
    return record["kind"] != "change" || record["moved"] <= record["least_moves"];
  });
  if (!is_complete) std::fprintf(stderr, "some jobs have not fired\n");
  if (!is_still) std::fprintf(stderr, "some shards moved that need not\n");
  return is_complete && is_still ? 0 : 1;
}

}  // namespace
}  // namespace tocsin

int main(int argc, char** argv) {
  try {
    return tocsin::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tocsin_scaling: %s\n", error.what());
    return 1;
  }
}
