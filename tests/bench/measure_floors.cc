// What PostgreSQL alone does in this run: the same rows, the same statements, no node in between.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "base/progress.h"
#include "bench/lanes.h"
#include "bench/measurements.h"
#include "bench/raw_sql.h"
#include "bench/subject.h"
#include "bench/workloads.h"
#include "postgres/text.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

constexpr std::size_t kBatch = Subject::kBatch;
constexpr int kConnections = 32;
constexpr std::size_t kCancelBatch = 32;  // as many as wait at once in the measurement of the node

WallTime local_now() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }

// Calls work(connection, chunk) on every lane, with a connection each.
using ChunkWork = std::function<void(pqxx::connection&, std::size_t)>;
std::function<Work()> with_connection(const std::string& database, const std::string& statement, ChunkWork work) {
  return [=] {
    auto connection = std::make_shared<pqxx::connection>(database);
    if (!statement.empty()) connection->prepare("floor", statement);
    return [=](std::size_t chunk) { work(*connection, chunk); };
  };
}

// One table with the columns, checks and indexes of a shard.
class PlainTable {
 public:
  PlainTable(Bench& bench, const std::string& database)
      : bench_(bench), database_(database), jobs_(jobs_due_at(local_now() + kFar, bench.sizes.floor_rows)) {
    for (const char* statement :
         {"CREATE TABLE floor (LIKE tocsin.job_live INCLUDING ALL)", "CREATE UNIQUE INDEX ON floor (job_id)",
          "CREATE INDEX ON floor (type_id, fire_at, job_id)", "CREATE INDEX ON floor (biz_id)",
          "CREATE UNIQUE INDEX ON floor (biz_id, type_id, idempotency_key) WHERE idempotency_key IS NOT NULL"})
      execute(database_, statement);
  }

  void copy() {
    const double took_s = run_lanes(
        1, 1, with_connection(database_, "", [this](pqxx::connection& connection, std::size_t) {
          pqxx::work tx(connection);
          pqxx::stream_to stream(
              tx, "floor",
              std::vector<std::string>{"job_id", "action_time", "fire_at", "gmt_create", "gmt_modified", "type_id",
                                       "shard", "max_attempts", "biz_id", "attribute"});
          for (const BenchJob& job : jobs_) {
            const std::string due = to_pg(job.due);
            stream << std::make_tuple(job.number, due, due, due, due, 1, 0, 3, biz_id_of(job), attribute_of(job));
          }
          stream.complete();
          tx.commit();
        }));
    bench_.results.add("floor.copy", static_cast<double>(jobs_.size()) / took_s);
  }

  void insert_and_update() {
    execute(database_, "TRUNCATE floor");
    const auto insert = with_connection(
        database_,
        "INSERT INTO floor (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, max_attempts, "
        "biz_id, attribute)"
        " SELECT k.id, k.due, k.due, k.due, k.due, 1, 0, 3, k.biz_id, k.attribute"
        " FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::jsonb[]) k (id, due, biz_id, attribute)",
        [this](pqxx::connection& connection, std::size_t chunk) {
          PgArray ids, due, biz_ids, attributes;
          for (const BenchJob& job : chunk_of(chunk)) {
            ids.add(job.number);
            due.add(job.due);
            biz_ids.add_text(biz_id_of(job));
            attributes.add_text(attribute_of(job));
          }
          pqxx::nontransaction(connection)
              .exec_prepared("floor", ids.literal(), due.literal(), biz_ids.literal(), attributes.literal());
        });
    report("floor.insert_500", Subject::kBatchesInFlight, insert);
    execute(database_, "VACUUM ANALYZE floor");
    const auto update =
        with_connection(database_,
                        "UPDATE floor j SET status = 1, attempts = 1, claim_token = 1, gmt_modified = clock_timestamp()"
                        " FROM unnest($1::bigint[]) k (id) WHERE j.job_id = k.id",
                        [this](pqxx::connection& connection, std::size_t chunk) {
                          PgArray ids;
                          for (const BenchJob& job : chunk_of(chunk)) ids.add(job.number);
                          pqxx::nontransaction(connection).exec_prepared("floor", ids.literal());
                        });
    report("floor.update_500", 1, update);
  }

  void commits() {
    execute(database_, "TRUNCATE floor");
    std::atomic<std::int64_t> next = 0;
    const auto insert =
        with_connection(database_,
                        "INSERT INTO floor (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
                        "max_attempts, biz_id, attribute)"
                        " VALUES ($1, $2, $2, $2, $2, 1, 0, 3, $3, $4)",
                        [this, &next](pqxx::connection& connection, std::size_t) {
                          const BenchJob job{next++, jobs_.front().due};
                          pqxx::nontransaction(connection)
                              .exec_prepared("floor", job.number, to_pg(job.due), biz_id_of(job), attribute_of(job));
                        });
    bench_.results.add("floor.commit_32", rate_of_lanes(kConnections, bench_.sizes.request_s / 2, insert));
    const double took_s = run_lanes(1, bench_.sizes.floor_commits, insert);
    const auto commits = static_cast<double>(bench_.sizes.floor_commits);
    bench_.results.add("floor.commit_1", commits / took_s);
    bench_.results.add("floor.commit_ms", 1000 * took_s / commits);
  }

 private:
  std::span<const BenchJob> chunk_of(std::size_t chunk) const {
    return std::span(jobs_).subspan(chunk * kBatch, std::min(kBatch, jobs_.size() - chunk * kBatch));
  }

  void report(const std::string& figure, int lanes, const std::function<Work()>& work) {
    const double took_s = run_lanes(lanes, (jobs_.size() + kBatch - 1) / kBatch, work);
    bench_.results.add(figure, static_cast<double>(jobs_.size()) / took_s);
  }

  Bench& bench_;
  const std::string database_;
  const std::vector<BenchJob> jobs_;
};

// Tocsin's own tables and statements.
class OwnStatements {
 public:
  OwnStatements(Bench& bench, const std::string& database)
      : bench_(bench), database_(database), type_(install_schema(database)) {}

  void create(const std::string& figure, std::size_t batch) {
    const double took_s = create_jobs(local_now() + kFar, batch);
    bench_.results.add(figure, static_cast<double>(ids_.size()) / took_s);
    execute(database_, "TRUNCATE tocsin.job_live");
  }

  // Creates overdue jobs and times what `verb` does with them.
  using Verb = void (RawSql::*)(std::span<const JobId>);
  void time(const std::string& figure, Verb verb, int lanes, std::size_t batch) {
    create_jobs(local_now() - std::chrono::seconds(1), kBatch);
    settle();
    const double took_s = run_lanes(lanes, ids_.size() / batch, [&]() -> Work {
      auto hand = std::make_shared<RawSql>(database_, type_);
      return [this, hand, verb, batch](std::size_t chunk) {
        ((*hand).*verb)(std::span(ids_).subspan(chunk * batch, batch));
      };
    });
    bench_.results.add(figure, static_cast<double>(ids_.size() / batch * batch) / took_s);
    execute(database_, "TRUNCATE tocsin.job_live, tocsin.job_history");
  }

  void fire_due() {
    create_jobs(local_now() - std::chrono::seconds(1), kBatch);
    settle();
    const double took_s = run_lanes(2, kDefaultShards, [&]() -> Work {
      auto hand = std::make_shared<RawSql>(database_, type_);
      for (int shard = 0; shard < kDefaultShards; ++shard) hand->fire_due(static_cast<Shard>(shard), 0);
      return [hand](std::size_t shard) {
        while (hand->fire_due(static_cast<Shard>(shard), static_cast<int>(kBatch)) == kBatch) {
        }
      };
    });
    bench_.results.add("floor.fire_due", static_cast<double>(ids_.size()) / took_s);
  }

 private:
  double create_jobs(WallTime due, std::size_t batch) {
    const std::vector<BenchJob> jobs = jobs_due_at(due, bench_.sizes.floor_rows);
    ids_ = RawSql(database_, type_).draw_ids(jobs);
    return run_lanes(Subject::kBatchesInFlight, (jobs.size() + batch - 1) / batch, [&]() -> Work {
      auto hand = std::make_shared<RawSql>(database_, type_);
      return [&, hand](std::size_t chunk) {
        const std::size_t first = chunk * batch, n = std::min(batch, jobs.size() - first);
        hand->create(std::span(ids_).subspan(first, n), std::span(jobs).subspan(first, n));
      };
    });
  }

  void settle() {
    execute(database_, "VACUUM ANALYZE");
    execute(database_, "CHECKPOINT");
  }

  Bench& bench_;
  const std::string database_;
  const TypeId type_;
  std::vector<JobId> ids_;
};

}  // namespace

void measure_floors(Bench& bench) {
  Progress progress("floors");
  std::int64_t step = 0;
  const auto total = static_cast<std::int64_t>(8 + bench.claimers.size());
  const auto show = [&](const char* what) { progress.show(step++, total, what); };

  const Database database(bench.server);
  show("Tocsin's create");
  OwnStatements own(bench, database.url());
  own.create("floor.create_500", 500);
  own.create("floor.create_10000", 10'000);
  show("Tocsin's cancel");
  own.time("floor.cancel_32", &RawSql::cancel, 2, kCancelBatch);
  show("Tocsin's claim and finish");
  own.time("floor.claimed", &RawSql::claim_and_finish, 2, kBatch);
  for (const int n : bench.claimers) {
    show("Tocsin's fire");
    own.time("floor.fire_" + std::to_string(n), &RawSql::fire, n, kBatch);
  }
  show("Tocsin's fire of a backlog");
  own.fire_due();

  PlainTable table(bench, database.url());
  show("COPY");
  table.copy();
  show("insert and update");
  table.insert_and_update();
  show("single commits");
  table.commits();
}

}  // namespace tocsin::bench
