// What one whole life costs, by a node and by its statements alone.
#include <algorithm>
#include <memory>

#include "bench/lanes.h"
#include "bench/measurements.h"
#include "bench/own_node.h"
#include "bench/raw_sql.h"
#include "bench/stage_times.h"
#include "bench/subject.h"

namespace tocsin::bench {
namespace {

using std::chrono::seconds;

constexpr std::size_t kLifeBatch = Subject::kBatch;
constexpr int kClaimers = 2;  // a node's default

// What the database has done so far, for one database.
struct Counters {
  double transactions = 0, wal_bytes = 0;
  std::optional<double> statements, milliseconds;  // nullopt: pg_stat_statements is not loaded
};

bool try_statistics(pqxx::connection& connection) {
  try {
    pqxx::nontransaction(connection).exec("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
    pqxx::nontransaction(connection).exec("SELECT count(*) FROM pg_stat_statements");  // fails unless it is preloaded
    return true;
  } catch (const pqxx::sql_error&) {
    return false;
  }
}

Counters counters_of(pqxx::connection& connection, bool has_statistics) {
  pqxx::nontransaction tx(connection);
  Counters counters;
  const auto row = tx.exec1(
      "SELECT xact_commit, pg_current_wal_lsn() - '0/0' FROM pg_stat_database WHERE datname = current_database()");
  counters.transactions = row[0].as<double>();
  counters.wal_bytes = row[1].as<double>();
  if (!has_statistics) return counters;
  const auto sums = tx.exec1(
      "SELECT sum(calls), sum(total_exec_time) FROM pg_stat_statements"
      " WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())");
  counters.statements = sums[0].as<double>();
  counters.milliseconds = sums[1].as<double>();
  return counters;
}

// The order of the series "stage".
constexpr const char* kStages[] = {"scanner", "timekeeper", "claimer", "runner", "finisher"};

struct Kind {
  const char* name;
  std::string binary;
  const char* handler;
  void (RawSql::*run)(std::span<const JobId>);  // what follows the create
  int number;                                   // in the series "stage"
};

// What happened between two moments.
struct Reading {
  Counters counters;
  StageTimes stages;
};

void report(Bench& bench, const Kind& kind, const Reading& before, const Reading& after, std::size_t jobs) {
  const auto n = static_cast<double>(jobs);
  const auto add = [&](const std::string& figure, double value) {
    bench.results.add(std::string("life.") + kind.name + "." + figure, value);
  };
  add("transactions", 1000 * (after.counters.transactions - before.counters.transactions) / n);
  add("wal", (after.counters.wal_bytes - before.counters.wal_bytes) / n);
  if (before.counters.statements) {
    add("statements", 1000 * (*after.counters.statements - *before.counters.statements) / n);
    add("database", 1000 * (*after.counters.milliseconds - *before.counters.milliseconds) / n);
  }
  for (int i = 0; i < static_cast<int>(std::size(kStages)); ++i) {
    const std::string stage = kStages[i];
    const auto then = before.stages.find(stage), now = after.stages.find(stage);
    if (now == after.stages.end()) continue;
    const StepHistogram took = now->second.since(then == before.stages.end() ? StepHistogram{} : then->second);
    add("stage_" + stage, 1e6 * took.seconds / n);
    bench.results.add_point("stage", {{"round", bench.round},
                                      {"kind", kind.number},
                                      {"stage", i},
                                      {"steps", took.steps},
                                      {"seconds", took.seconds}});
  }
}

// Creates, then fires when all are due; the time in between does not count. Returns the seconds.
double by_node(Bench& bench, const Kind& kind, std::size_t n) {
  Subject subject(bench.server, {kind.binary, kind.handler, {"--claimers", std::to_string(kClaimers)}});
  const bool has_statistics = try_statistics(subject.sql());
  const WallTime due = subject.db_now() + seconds(3 + static_cast<int>(n / 10'000));
  Reading before{counters_of(subject.sql(), has_statistics), stage_times_of(subject.port())};
  const double creating = subject.create(jobs_due_at(due, n)).seconds;
  if (subject.db_now() > due) throw Failure("some jobs were due before all were created");
  subject.wait_until(due, "waiting for the deadline");
  // Asks seldom: the questions are counted too.
  subject.wait_until(due + std::chrono::seconds(1 + static_cast<int>(n / 20'000)), "firing");
  subject.wait_until_finished(static_cast<std::int64_t>(n), "the last of them");
  const std::chrono::duration<double> firing = subject.last_finished_at() - due;
  Reading after{{}, stage_times_of(subject.port())};
  subject.stop();  // its sessions report their counts at the latest when they end
  after.counters = counters_of(subject.sql(), has_statistics);
  report(bench, kind, before, after, n);
  return creating + firing.count();
}

// The same, with so many connections that create and that fire.
double raw_sql_baseline(Bench& bench, const Kind& kind, std::size_t n, int creators, int claimers) {
  const Database database(bench.server);
  const TypeId type = install_schema(database.url());
  const std::vector<BenchJob> jobs =
      jobs_due_at(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()), n);
  const std::vector<JobId> ids = RawSql(database.url(), type).draw_ids(jobs);
  const auto lanes = [&](int count, const std::function<void(RawSql&, std::size_t, std::size_t)>& verb) {
    return run_lanes(count, (n + kLifeBatch - 1) / kLifeBatch, [&]() -> Work {
      auto hand = std::make_shared<RawSql>(database.url(), type);
      return [&, hand](std::size_t chunk) {
        verb(*hand, chunk * kLifeBatch, std::min(kLifeBatch, n - chunk * kLifeBatch));
      };
    });
  };
  const double creating = lanes(creators, [&](RawSql& hand, std::size_t first, std::size_t count) {
    hand.create(std::span(ids).subspan(first, count), std::span(jobs).subspan(first, count));
  });
  const double running = lanes(claimers, [&](RawSql& hand, std::size_t first, std::size_t count) {
    (hand.*kind.run)(std::span(ids).subspan(first, count));
  });
  return creating + running;
}

}  // namespace

void measure_life(Bench& bench) {
  const std::size_t n = bench.sizes.life_jobs;
  const double us_per_job = 1e6 / static_cast<double>(n);
  const Kind noop{"noop", bench.binary.path, R"({"kind":"noop"})", &RawSql::fire, 0};
  const Kind claimed{"claimed", kThisProgram, kCppHandler, &RawSql::claim_and_finish, 1};
  for (const Kind& kind : {noop, claimed}) {
    const std::string prefix = std::string("life.") + kind.name;
    const double node = by_node(bench, kind, n);
    const double hand = raw_sql_baseline(bench, kind, n, Subject::kBatchesInFlight, kClaimers);
    bench.results.add(prefix + ".node", us_per_job * node);
    bench.results.add(prefix + ".raw_sql", us_per_job * hand);
    bench.results.add(prefix + ".ratio", node / hand);
  }
  bench.results.add("life.noop.one_backend", us_per_job * raw_sql_baseline(bench, noop, n, 1, 1));
}

}  // namespace tocsin::bench
