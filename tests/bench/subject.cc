#include "bench/subject.h"

#include "base/progress.h"
#include "bench/processor_time.h"
#include "bench/stage_times.h"
#include "cli/pause.h"
#include "postgres/text.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kLookPause(50);
constexpr auto kReadyWithin = std::chrono::seconds(60);
constexpr milliseconds kSweepTime(3'000);              // until nodes that have got their shards have swept them
constexpr auto kStuckTime = std::chrono::seconds(60);  // without any job finished

std::vector<std::string> serve_command(const SubjectOptions& options, const std::string& database, int port) {
  std::vector<std::string> command = options.wrapper;
  for (const std::string& word :
       {options.binary.path, std::string("serve"), std::string("--migrate"), std::string("--database"), database,
        std::string("--listen"), "127.0.0.1:" + std::to_string(port), std::string("--log-level"), std::string("warn")})
    command.push_back(word);
  command.insert(command.end(), options.further.begin(), options.further.end());
  return command;
}

}  // namespace

Connection connection_to(int port) {
  Connection connection;
  connection.url = "http://127.0.0.1:" + std::to_string(port);
  return connection;
}

Subject::Subject(std::unique_ptr<Database> own, const std::string& database, const SubjectOptions& options)
    : own_(std::move(own)),
      database_(own_ ? own_->url() : database),
      port_(free_port()),
      process_(std::make_unique<Process>(serve_command(options, database_, port_))),
      rest_(std::make_unique<RestClient>(connection_to(port_))),
      sql_(std::make_unique<pqxx::connection>(database_)) {
  wait_until_ready();
  put_type(kType, options.handler);
  standing_ = unfinished();
  start_others(options);
}

// Returns when every node owns shards, and has had the time to sweep them.
void Subject::start_others(const SubjectOptions& options) {
  const int nodes = options.binary.nodes;
  if (nodes == 1) return;
  for (int i = 1; i < nodes; ++i) {
    const int port = free_port();
    std::vector<std::string> command = serve_command(options, database_, port);
    command.insert(command.end(), {"--node-name", "node-" + std::to_string(i)});
    others_.push_back({port, std::make_unique<Process>(command)});
  }
  const std::string owners = "SELECT count(DISTINCT o) FROM tocsin.shard_map, unnest(owners) o WHERE o <> 0";
  for (const auto end = SteadyClock::now() + kReadyWithin; SteadyClock::now() < end; pause_for(kLookPause)) {
    if (pqxx::nontransaction(*sql_).exec1(owners)[0].as<int>() < nodes) continue;
    pause_for(kSweepTime);
    return;
  }
  throw Failure("the nodes do not share the shards");
}

double Subject::counter(const std::string& name) const {
  double sum = counter_of(port_, name);
  for (const Other& other : others_) sum += counter_of(other.port, name);
  return sum;
}

double Subject::processor_seconds() const {
  double sum = bench::processor_seconds(process_->pid());
  for (const Other& other : others_) sum += bench::processor_seconds(other.process->pid());
  return sum;
}

double Subject::resident_mb() const {
  double most = process_->resident_mb();
  for (const Other& other : others_) most = std::max(most, other.process->resident_mb());
  return most;
}

double Subject::peak_mb() const {
  double most = process_->peak_mb();
  for (const Other& other : others_) most = std::max(most, other.process->peak_mb());
  return most;
}

void Subject::stop() {
  for (const Other& other : others_) other.process->stop();
  process_->stop();
}

void Subject::reconnect() {
  sql_ = std::make_unique<pqxx::connection>(database_);
  wait_until_ready();
}

void Subject::put_type(const std::string& name, const std::string& handler) {
  rest_->send("PUT", "/v1/types/" + name, {{"handler", Json::parse(handler)}, {"max_attempts", 3}});
}

void Subject::wait_until_ready() {
  const auto end = SteadyClock::now() + kReadyWithin;
  for (;;) {
    if (!process_->is_running()) throw Failure("the node ended at its start");
    try {
      if (rest_->call("GET", "/readyz").ok()) return;
    } catch (const Failure&) {  // not listening yet
    }
    if (SteadyClock::now() > end) throw Failure("the node is not ready after 60 s");
    pause_for(milliseconds(20));
  }
}

LoadReport Subject::create(const std::vector<BenchJob>& jobs, std::size_t batch, std::vector<std::string>* ids) {
  std::vector<std::string> requests;  // made before: the clock shall measure the node
  for (std::size_t i = 0; i < jobs.size(); i += batch) {
    const std::span part(jobs.data() + i, std::min(batch, jobs.size() - i));
    requests.push_back(request_text("POST", "/v1/jobs/batch", batch_body(part)));
  }
  if (ids) ids->resize(jobs.size());
  Load load;
  load.port = port_;
  load.connections = kBatchesInFlight;
  load.expected_status = 201;
  load.next = [&](std::int64_t n, std::string& request) {
    if (n >= static_cast<std::int64_t>(requests.size())) return false;
    request = std::move(requests[static_cast<std::size_t>(n)]);
    return true;
  };
  if (ids) {
    load.on_answer = [&](std::int64_t n, const std::string& body) {
      const Json answer = Json::parse(body);
      std::size_t at = static_cast<std::size_t>(n) * batch;
      for (const Json& item : answer.at("items")) ids->at(at++) = item.at("job_id").get<std::string>();
    };
  }
  LoadReport report = run_strict_load(load);
  report.answered = static_cast<std::int64_t>(jobs.size());
  return report;
}

void Subject::settle() {
  pqxx::nontransaction tx(*sql_);
  tx.exec("VACUUM ANALYZE");
  tx.exec("CHECKPOINT");
}

WallTime Subject::time_of(const std::string& query) {
  pqxx::nontransaction tx(*sql_);
  return WallTime(
      Duration(tx.exec1("SELECT (extract(epoch FROM (" + query + ")) * 1000000)::bigint")[0].as<std::int64_t>()));
}

WallTime Subject::db_now() { return time_of("clock_timestamp()"); }

WallTime Subject::last_finished_at(WallTime since) {
  return time_of("SELECT max(finished_at) FROM tocsin.job WHERE status = 'done' AND finished_at >= '" + to_pg(since) +
                 "'");
}

void Subject::wait_until(WallTime time, const std::string& what) {
  Progress progress(what);
  const auto start = SteadyClock::now(), end = start + (time - db_now());
  const auto ms = [](auto length) { return std::chrono::duration_cast<milliseconds>(length).count(); };
  for (auto now = start; now < end; now = SteadyClock::now()) {
    progress.show(ms(now - start), ms(end - start), "ms");
    pause_for(std::min(kLookPause, milliseconds(ms(end - now) + 1)));
  }
}

std::int64_t Subject::unfinished() {
  pqxx::nontransaction tx(*sql_);
  return tx.exec1("SELECT sum(n)::bigint FROM tocsin.job_stats WHERE status IN ('pending', 'running')")[0]
             .as<std::int64_t>() -
         standing_;
}

void Subject::wait_until_finished(std::int64_t jobs, const std::string& what) {
  Progress progress(what);
  std::int64_t least = jobs;
  auto moved = SteadyClock::now();
  for (std::int64_t left; (left = unfinished()) > 0; pause_for(kLookPause)) {
    progress.show(jobs - left, jobs);
    if (left < least) {
      least = left;
      moved = SteadyClock::now();
    }
    if (SteadyClock::now() - moved > kStuckTime)
      throw Failure(std::to_string(left) + " jobs are not finished, and none was for 60 s");
  }
}

std::vector<double> Subject::lateness_ms(WallTime since, const std::string& type) {
  pqxx::nontransaction tx(*sql_);
  std::vector<double> lateness;
  for (const auto& row : tx.exec("SELECT extract(epoch FROM started_at - action_time) * 1000 FROM tocsin.job"
                                 " WHERE status = 'done' AND finished_at >= '" +
                                 to_pg(since) + "' AND biz_type = " + tx.quote(type) + " ORDER BY 1"))
    lateness.push_back(row[0].as<double>());
  return lateness;
}

}  // namespace tocsin::bench
