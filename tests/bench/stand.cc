#include "bench/stand.h"

#include <algorithm>

#include "bench/preload.h"
#include "bench/workloads.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

constexpr auto kQuiet = std::chrono::milliseconds(500);  // after the start of a node

std::string last_drawn(const std::string& database) {
  pqxx::connection connection(database);
  pqxx::nontransaction tx(connection);
  return tx.exec1("SELECT last_value FROM tocsin.job_seq")[0].c_str();
}

}  // namespace

Point Pass::point() const {
  Point point = {{"lateness_p50_ms", quantile(lateness_ms, 0.5)},
                 {"lateness_p99_ms", quantile(lateness_ms, 0.99)},
                 {"create_per_s", create},
                 {"create_p99_ms", create_p99},
                 {"cancel_per_s", cancel},
                 {"cancel_p99_ms", cancel_p99}};
  if (drain > 0) point.emplace_back("drain_per_s", drain);
  return point;
}

Stand::Stand(Bench& bench, std::vector<std::string> options_of_the_node)
    : database_(bench.server), options_{bench.binary, R"({"kind":"noop"})", std::move(options_of_the_node)} {
  Subject(url(), options_).stop();
}

Pass Stand::run_pass(const PassSizes& sizes, std::uint64_t seed) {
  const std::string drawn = last_drawn(url());
  Pass pass;
  {
    Subject subject(url(), options_);
    subject.wait_until(subject.db_now() + kQuiet, "starting");
    pass.lateness_ms = fire_over(subject, sizes.lateness_jobs, sizes.lateness_spread, seed);
    if (sizes.drain_jobs > 0) pass.drain = drain_rate(subject, sizes.drain_jobs);
    std::vector<std::string> ids;
    const LoadReport creates = create_for(subject, sizes.create_s, sizes.cancels, &ids);
    pass.create = creates.per_second();
    pass.create_p99 = quantile(creates.latency_ms, 0.99);
    const LoadReport cancels = cancel_all(subject, ids);
    if (cancels.unexpected > 0) throw Failure(std::to_string(cancels.unexpected) + " cancels were refused");
    pass.cancel = cancels.per_second();
    pass.cancel_p99 = quantile(cancels.latency_ms, 0.99);
    subject.stop();
  }
  remove_jobs_after(drawn);
  return pass;
}

void Stand::remove_jobs_after(const std::string& sequence) {
  execute(url(), "WITH d AS (DELETE FROM tocsin.job_live WHERE job_id > " + sequence +
                     " * 1024::bigint + 1023 RETURNING type_id, status)"
                     " INSERT INTO tocsin.job_count_delta SELECT type_id, status, -count(*) FROM d GROUP BY 1, 2");
  settle(url());
}

std::vector<double> pooled_lateness(const std::vector<Pass>& passes) {
  std::vector<double> all;
  for (const Pass& pass : passes) all.insert(all.end(), pass.lateness_ms.begin(), pass.lateness_ms.end());
  std::sort(all.begin(), all.end());
  return all;
}

void compare(Results& results, const std::string& prefix, const std::vector<Pass>& base,
             const std::vector<Pass>& passes) {
  const double p99 = quantile(pooled_lateness(passes), 0.99);
  results.add(prefix + ".lateness_p99", p99);
  results.add(prefix + ".lateness_ratio", p99 / quantile(pooled_lateness(base), 0.99));
  const auto rate = [&](const std::string& name, double Pass::*value) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (passes[i].*value <= 0) continue;
      results.add(prefix + "." + name, passes[i].*value);
      results.add(prefix + "." + name + "_slower", base[i].*value / (passes[i].*value));
    }
  };
  rate("drain", &Pass::drain);
  rate("create", &Pass::create);
  rate("cancel", &Pass::cancel);
}

}  // namespace tocsin::bench
