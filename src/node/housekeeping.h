// The housekeeping thread of one database: reads types, folds counts, makes history tables, drops old ones, and checks
// that the right database answers (DatabaseCheck).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/worker_thread.h"
#include "core/day_witness.h"
#include "core/report_histogram.h"
#include "ports/biz_type.h"
#include "ports/member_store.h"
#include "ports/report_store.h"
#include "postgres/pg_maintenance.h"
#include "postgres/session.h"
#include "tocsin/clock.h"

namespace tocsin {

struct HousekeepingConfig {
  SessionConfig session;
  std::map<std::string, int> retain_days;
  NodeId node_id = 0;
};

// Most data members tell when each task was done last, or is due. Thread: owner only, except reload_types() (any).
class Housekeeping {
 public:
  struct Callbacks {
    std::function<Status()> check;                   // Error invalid: it is not the right database
    std::function<void()> checked;                   // it is, and ready for the first finish; also when it was before
    std::function<void(const Error&)> refused;       // it is not, or not any more
    std::function<Status(TypeStore&)> reload_types;  // to read the registry with, or to mirror it
    std::function<void()> answered;                  // the database answered
    std::function<void(const Error&)> failed;
    std::function<std::vector<ReportHistogram>()> take_histograms;  // what has come together for the reports
    std::function<void(std::vector<TypeState>)> counted;
    // The number of days of history that are old by the database's clock only, and stay. Called when it changes.
    std::function<void(std::size_t days)> withheld = [](std::size_t) {};
  };
  Housekeeping(HousekeepingConfig config, const Clock& clock, Callbacks callbacks);
  ~Housekeeping() { stop(); }

  // Checks the database and reads the types before it returns. Error: it did not answer; nothing runs then.
  Status start();
  // The same whenever the database answers.
  void start_later();
  void reload_types();  // soon, on its own thread
  void stop() { worker_.stop(); }

 private:
  void run();
  Status prepare();
  bool is_check_due() const;
  Status round(bool reload);
  Status slow_round();
  Status flush_reports();
  Status count_types();
  Status count_horizon();
  Status keep_zone_days();
  void withhold(std::vector<PgMaintenance::OldDay>& old);

  const HousekeepingConfig config_;
  const Clock& clock_;
  const Callbacks callbacks_;
  Session session_;
  std::atomic<bool> is_reload_wanted_{false};
  bool is_folding_ = true;  // the last round found counts to fold
  bool is_prepared_ = false;
  bool is_check_wanted_ = true;
  DayWitness witness_;
  std::size_t withheld_ = 0;
  MonoTime checked_at_{};
  std::uint64_t prepared_connection_ = 0;
  MonoTime next_slow_round_;
  MonoTime next_flush_;
  MonoTime next_horizon_;
  MonoTime next_zone_days_;
  std::vector<ReportHistogram> unflushed_;  // sent, and not known to be written
  std::int64_t flushes_ = 0;
  WorkerThread worker_;
};

}  // namespace tocsin
