// What slow and numerous businesses cost the others when several nodes share one database: quiet, while one node stands
// still, after notifications were lost, and after a standby took over.
#include <signal.h>

#include <algorithm>
#include <deque>
#include <map>

#include "bench/deliveries.h"
#include "bench/measurements.h"
#include "bench/stage_times.h"
#include "bench/workloads.h"
#include "cli/pause.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kGatewayTypes = 6, kSlowTypes = 20, kNoopTypes = 100;
constexpr std::size_t kHealthyRate = 20, kNoopRate = 2'000;

enum class Trouble { none, stopped_node, lost_listen };

struct ClusterOutcome {
  double p50_ms = 0, p99_ms = 0, latest_ms = 0;  // of the healthy type
  double first_p99_ms = 0;                       // of its jobs that the first node ran
  double released = 0;                           // percent of the starts, of all nodes
  double gateway_done = 0;                       // per second
  double spread = 0;                             // healthy jobs of the node with most to that with least
};

class NodesOnOneDatabase {
 public:
  NodesOnOneDatabase(Bench& bench, const std::string& database, int n) {
    for (int i = 0; i < n; ++i) {
      const std::vector<std::string> name{"--node-name", "node-" + std::to_string(i)};
      nodes_.emplace_back(database, SubjectOptions{bench.binary.path, hook(healthy_.url()), name});
    }
    for (int i = 0; i < kGatewayTypes; ++i) put("gateway", i, hook(gateway_.url()));
    for (int i = 0; i < kSlowTypes; ++i) put("slow", i, hook(slow_.url_of(i)));
    for (int i = 0; i < kNoopTypes; ++i) put("noop", i, R"({"kind":"noop"})");
    wait_until_shared();
  }

  // After the database has another primary.
  void reconnect() {
    for (Subject& node : nodes_) node.reconnect();
    wait_until_shared();
  }

  ClusterOutcome run(int lasts_s, Trouble trouble) {
    const auto lasts = seconds(lasts_s);
    const WallTime start = first().db_now() + seconds(6);
    create(jobs_due_over(start, seconds(1), 300 * kGatewayTypes, 1), "gateway");
    create(jobs_due_over(start, lasts, 100 * kSlowTypes, 2), "slow");
    create(jobs_due_over(start, lasts, kNoopRate * static_cast<std::size_t>(lasts_s), 3), "noop");
    first().create(jobs_due_over(start, lasts, kHealthyRate * static_cast<std::size_t>(lasts_s), 4));
    first().wait_until(start + lasts / 3, "the cluster");
    if (trouble == Trouble::stopped_node) {
      ::kill(nodes_.back().process().pid(), SIGSTOP);
      pause_for(milliseconds(3000));
      ::kill(nodes_.back().process().pid(), SIGCONT);
    }
    if (trouble == Trouble::lost_listen)
      number(
          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND "
          "application_name = 'tocsin listener'");
    first().wait_until(start + lasts + seconds(5), "the cluster");
    return outcome(lasts_s + 5);
  }

 private:
  static std::string hook(const std::string& url) {
    return Json{{"kind", "webhook"}, {"url", url}, {"timeout_ms", 20'000}}.dump();
  }
  Subject& first() { return nodes_.front(); }
  void wait_until_shared() {
    for (int tries = 0; owners() != static_cast<int>(nodes_.size()); ++tries) {
      if (tries > 600) throw Failure("the nodes do not share the shards");
      pause_for(milliseconds(50));
    }
    pause_for(milliseconds(3000));  // all have heard of it, and swept
  }
  void put(const std::string& group, int i, const std::string& handler) {
    names_[group].push_back(group + "-" + std::to_string(i));
    first().put_type(names_[group].back(), handler);
  }
  void create(std::vector<BenchJob> jobs, const std::string& group) {
    const auto& names = names_[group];
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].type = names[i % names.size()].c_str();
    first().create(jobs);
  }
  double number(const std::string& sql) { return pqxx::nontransaction(first().sql()).exec1(sql)[0].as<double>(); }
  int owners() {
    return static_cast<int>(number("SELECT count(DISTINCT o) FROM tocsin.shard_map, unnest(owners) o WHERE o <> 0"));
  }
  ClusterOutcome outcome(int within_s) {
    ClusterOutcome outcome;
    const auto late = first().lateness_ms();
    outcome.p50_ms = quantile(late, 0.5), outcome.p99_ms = quantile(late, 0.99);
    outcome.latest_ms = late.empty() ? 0 : late.back();
    outcome.first_p99_ms = number(
        "SELECT coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - action_time)) * "
        "1000, 0)::float8 FROM tocsin.job WHERE status = 'done' AND node LIKE 'node-0%' AND biz_type = '" +
        std::string(kType) + "'");
    double back = 0, won = 0;
    for (const Subject& node : nodes_) {
      back += counter_of(node.port(), "tocsin_given_back_total");
      won += counter_of(node.port(), "tocsin_claims_won_total");
    }
    outcome.released = 100 * back / std::max(1.0, won);
    outcome.gateway_done =
        number("SELECT count(*) FROM tocsin.job WHERE status = 'done' AND biz_type LIKE 'gateway-%'") / within_s;
    outcome.spread = number(
        "SELECT coalesce(max(n)::float8 / min(n), 0) FROM (SELECT node, count(*) n FROM tocsin.job WHERE biz_type = '" +
        std::string(kType) + "' AND status = 'done' GROUP BY node) x");
    return outcome;
  }

  Deliveries healthy_, gateway_{milliseconds(2'000)}, slow_{milliseconds(5'000)};
  std::deque<Subject> nodes_;
  std::map<std::string, std::deque<std::string>> names_;
};

void note(Results& results, const std::string& name, const ClusterOutcome& outcome) {
  const std::string prefix = "cluster." + name;
  results.add(prefix + "_p50", outcome.p50_ms);
  results.add(prefix + "_p99", outcome.p99_ms);
  results.add(prefix + "_latest", outcome.latest_ms);
  results.add(prefix + "_first_p99", outcome.first_p99_ms);
  results.add(prefix + "_released", outcome.released);
  results.add(prefix + "_gateway", outcome.gateway_done);
  results.add(prefix + "_spread", outcome.spread);
}

}  // namespace

void measure_cluster(Bench& bench) {
  struct Case {
    const char* name;
    int nodes;
    Trouble trouble;
  };
  for (const auto& [name, nodes, trouble] :
       {Case{"1", 1, Trouble::none}, Case{"2", 2, Trouble::none}, Case{"4", 4, Trouble::none},
        Case{"stopped", 2, Trouble::stopped_node}, Case{"notifications_lost", 2, Trouble::lost_listen}}) {
    const Database database(bench.server);
    note(bench.results, name, NodesOnOneDatabase(bench, database.url(), nodes).run(bench.sizes.cluster_s, trouble));
  }
  ServerPair servers(bench.server.script());
  NodesOnOneDatabase cluster(bench, servers.url(), 2);
  servers.fail_over();
  cluster.reconnect();
  note(bench.results, "promoted", cluster.run(bench.sizes.cluster_s, Trouble::none));
}

}  // namespace tocsin::bench
