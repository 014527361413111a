#include "bench/verb_floor.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "bench/memory_file.h"
#include "bench_core/process.h"
#include "cli/rest_client.h"
#include "support/server.h"

namespace tocsin::bench {

namespace {

double rate_with(const std::vector<std::string>& options, const std::string& database, const std::string& script,
                 double length_s) {
  const MemoryFile file(script);
  std::vector<std::string> command = {"pgbench", "-n", "-M", "prepared", "-c", "32", "-j", "2", "-D", "i=0"};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string& last :
       {std::string("-T"), std::to_string(static_cast<int>(length_s)), std::string("-f"), file.path(), database})
    command.push_back(last);
  const std::string output = output_of(command);
  const auto at = output.find("tps = ");
  if (at == std::string::npos) throw Failure("pgbench failed");
  return std::stod(output.substr(at + 6));
}

// A folder in memory, where there is one.
class LogFolder {
 public:
  LogFolder() {
    const bool has_memory = std::filesystem::is_directory("/dev/shm");
    std::string name = (has_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/tocsin.XXXXXX";
    if (!::mkdtemp(name.data())) throw Failure("no folder for the log of pgbench");
    path_ = name;
  }
  ~LogFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The third number of each line is the time of a transaction in microseconds. Sorted.
std::vector<double> times_of(const std::filesystem::path& folder) {
  std::vector<double> ms;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream numbers(line);
      double client = 0, transaction = 0, us = 0;
      if (numbers >> client >> transaction >> us) ms.push_back(us / 1000);
    }
  }
  std::sort(ms.begin(), ms.end());
  return ms;
}

}  // namespace

double pgbench_rate(const std::string& database, const std::string& script, double length_s) {
  return rate_with({}, database, script, length_s);
}

PgbenchReport run_pgbench(const std::string& database, const std::string& script, double length_s) {
  const LogFolder folder;
  PgbenchReport report;
  report.per_second =
      rate_with({"--log", "--log-prefix=" + (folder.path() / "log").string()}, database, script, length_s);
  const auto ms = times_of(folder.path());
  report.p50_ms = quantile(ms, 0.5);
  report.p99_ms = quantile(ms, 0.99);
  return report;
}

double verb_floor(const std::string& database, double length_s) {
  execute(database,
          "CREATE TABLE IF NOT EXISTS floor (LIKE tocsin.job_live INCLUDING ALL);"
          "CREATE SEQUENCE IF NOT EXISTS floor_seq CACHE 100;"
          "CREATE UNIQUE INDEX IF NOT EXISTS floor_id ON floor (job_id);"
          "CREATE INDEX IF NOT EXISTS floor_due ON floor (type_id, fire_at, job_id);"
          "CREATE INDEX IF NOT EXISTS floor_biz ON floor (biz_id, job_id);"
          "TRUNCATE floor");
  return pgbench_rate(
      database,
      "\\set n random(1, 1000000000)\n"
      "INSERT INTO floor (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
      "max_attempts, biz_id, attribute) VALUES (nextval('floor_seq'), '2040-01-01', '2040-01-01', now(), "
      "now(), 1, 0, 3, 'order-' || :n, '{\"run\":\"verbs\",\"pad\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}');\n",
      length_s);
}

void note_verb(Results& results, const std::string& name, const WrkReport& report, double floor) {
  note_verb(results, name, PgbenchReport{report.per_second(), report.p50_ms, report.p99_ms}, floor);
}

void note_verb(Results& results, const std::string& name, const PgbenchReport& report, double floor) {
  results.add(name, report.per_second);
  results.add(name + "_x", report.per_second / floor);
  results.add(name + "_p50", report.p50_ms);
  results.add(name + "_p99", report.p99_ms);
}

}  // namespace tocsin::bench
