#include "bench/verb_floor.h"

#include "bench/memory_file.h"
#include "bench_core/process.h"
#include "support/server.h"

namespace tocsin::bench {

double pgbench_rate(const std::string& database, const std::string& script, double length_s) {
  const MemoryFile file(script);
  const std::string output = output_of({"pgbench", "-n", "-M", "prepared", "-c", "32", "-j", "2", "-D", "i=0", "-T",
                                        std::to_string(static_cast<int>(length_s)), "-f", file.path(), database});
  const auto at = output.find("tps = ");
  if (at == std::string::npos) throw Failure("pgbench failed");
  return std::stod(output.substr(at + 6));
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
  results.add(name, report.per_second());
  results.add(name + "_x", report.per_second() / floor);
  results.add(name + "_p50", report.p50_ms);
  results.add(name + "_p99", report.p99_ms);
}

}  // namespace tocsin::bench
