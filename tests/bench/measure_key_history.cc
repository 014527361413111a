// What many finished jobs add to a single caller's wait, for every verb.
#include <chrono>
#include <functional>

#include "bench/measurements.h"
#include "bench/preload.h"
#include "bench/subject.h"
#include "bench/verb_figures.h"
#include "bench/workloads.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

constexpr int kCallsPerVerb = 200;

// One caller, one request after the other, in one state of the database.
class LoneCaller {
 public:
  LoneCaller(Bench& bench, Subject& subject, std::string state)
      : bench_(bench), subject_(subject), state_(std::move(state)) {}

  void time_all() {
    time_creates();
    time_reads();
    time_changes();
    time_cancels();
    p50("get_finished", [&](int i) { rest().get("/v1/jobs/" + keyed_[at(i)]); });
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  RestClient& rest() { return subject_.rest(); }
  std::string key(const char* kind, int i) const { return state_ + "-" + kind + "-" + std::to_string(i); }
  static std::string finished_key(int i) { return "finished-" + std::to_string(1 + i * 97); }
  // Of a shard that exists, beyond all that were drawn.
  static std::string unknown_id(int i) { return std::to_string((std::int64_t{1'000'000'000} + i) * 1'024 + i % 8); }

  // Adds the p50 of a verb in ms.
  void p50(const char* verb, const std::function<void(int)>& call) {
    std::vector<double> ms;
    for (int i = 0; i < kCallsPerVerb; ++i) {
      const auto start = std::chrono::steady_clock::now();
      call(i);
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    bench_.results.add("key_history." + state_ + "_" + verb, median(ms));
  }

  std::string create(const std::string& biz_id, bool has_key) {
    Json job = {{"biz_type", kType}, {"biz_id", biz_id}, {"delay_ms", 86'400'000}};
    if (has_key) job["idempotency_key"] = "k";
    return rest().send("POST", "/v1/jobs", job).at("job_id").get<std::string>();
  }
  void change(const std::string& id, const char* verb, const Json& body) {
    rest().send("POST", "/v1/jobs/" + id + "/" + verb, body);
  }
  void cancel(const std::string& biz_id) { rest().send("POST", "/v1/jobs/cancel", {{"biz_id", biz_id}}); }
  pqxx::result sql(const std::string& function, const std::string& a, const std::string& more = "") {
    pqxx::nontransaction tx(subject_.sql());
    return tx.exec("SELECT * FROM tocsin." + function + "('" + a + "'" + more + ")");
  }

  void time_creates() {
    p50("create", [&](int i) { plain_.push_back(create(key("plain", i), false)); });
    p50("keyed", [&](int i) { keyed_.push_back(create(key("keyed", i), true)); });
    p50("sql_create", [&](int i) {
      by_sql_.push_back(sql("create_job", kType, ", '" + key("sql", i) + "', '2040-01-01'")[0][0].as<std::string>());
    });
    for (int i = 0; i < kCallsPerVerb; ++i) create(key("more", i), false);
  }

  void time_reads() {
    const std::string list = "/v1/jobs?biz_id=";
    p50("get", [&](int i) { rest().get("/v1/jobs/" + keyed_[at(i)]); });
    p50("get_unknown", [&](int i) {
      if (rest().call("GET", "/v1/jobs/" + unknown_id(i)).status != 404) throw Failure("an unknown job was found");
    });
    p50("list_key", [&](int i) { rest().get(list + key("keyed", i)); });
    p50("list_key_pending", [&](int i) { rest().get(list + key("keyed", i) + "&status=pending"); });
    p50("list_finished_key", [&](int i) { rest().get(list + finished_key(i)); });
    p50("list_finished_key_done", [&](int i) { rest().get(list + finished_key(i) + "&status=done"); });
    p50("list_unknown_key", [&](int i) { rest().get(list + key("unknown", i)); });
    p50("list_done", [&](int) { rest().get(std::string("/v1/jobs?status=done&limit=100&biz_type=") + kType); });
  }

  void time_changes() {
    p50("reschedule", [&](int i) { change(keyed_[at(i)], "reschedule", {{"delay_ms", 86'400'000}}); });
    p50("sql_reschedule", [&](int i) { sql("reschedule_job", keyed_[at(i)], ", '2040-01-01'"); });
    p50("run", [&](int i) { change(by_sql_[at(i)], "run", Json::object()); });
  }

  void time_cancels() {
    p50("cancel", [&](int i) { change(plain_[at(i)], "cancel", Json::object()); });
    p50("cancel_key", [&](int i) { cancel(key("keyed", i)); });
    p50("cancel_finished_key", [&](int i) { cancel(finished_key(i)); });
    p50("cancel_unknown_key", [&](int i) { cancel(key("unknown", i)); });
    p50("sql_cancel_key", [&](int i) { sql("cancel_jobs", key("more", i)); });
  }

  Bench& bench_;
  Subject& subject_;
  const std::string state_;
  std::vector<std::string> plain_, keyed_, by_sql_;  // ids
};

// The planner learns nothing of today's and tomorrow's tables until it is asked to.
void stop_statistics(const std::string& database) {
  for (int day = 0; day < 2; ++day)
    for (const char* kind : {"done", "cancelled", "dead"})
      execute(database, std::string("DO $$ BEGIN EXECUTE format('ALTER TABLE tocsin.job_history_") + kind +
                            "_%s SET (autovacuum_enabled = off)', to_char((now() AT TIME ZONE 'UTC')::date + " +
                            std::to_string(day) + ", 'YYYYMMDD')); END $$");
}

}  // namespace

void measure_key_history(Bench& bench) {
  const auto time = [&](Subject& subject, const char* state) { LoneCaller(bench, subject, state).time_all(); };
  {
    Subject subject(bench.server, {bench.binary});
    stop_statistics(subject.database());
    time(subject, "none");
    write_finished_today(subject.database(), bench.sizes.key_history_jobs);
    execute(subject.database(), "CHECKPOINT");
    time(subject, "unknown");
    execute(subject.database(), "ANALYZE");
    time(subject, "known");
  }
  // Retention would drop the empty tables of earlier days before they are filled.
  Subject subject(bench.server, {bench.binary, R"({"kind":"noop"})", retain(kAllDays)});
  stop_statistics(subject.database());
  write_finished_today(subject.database(), bench.sizes.key_history_jobs / 1'000);
  execute(subject.database(), "ANALYZE");
  write_finished_today(subject.database(), bench.sizes.key_history_jobs);
  execute(subject.database(), "CHECKPOINT");
  time(subject, "stale");
  write_finished(subject.database(), bench.sizes.key_history_jobs, 30);
  execute(subject.database(), "CHECKPOINT");
  time(subject, "days");
}

}  // namespace tocsin::bench
