// Housekeeping: the thread of a node that maintains one database. Each turn does the tasks that are due. A turn begins
// every 3 s, or every second while counts are to be folded or the last turn failed. Several nodes may do the same task
// at once. Its commits wait for no synchronous standby (ADR 0051). Owned by Database (node/database.h).
//
//   read the types                                                         3 s
//   fold counts (add up what transactions have noted)                      1 s while there are any, else 3 s
//   check that the right database answers (DatabaseCheck)                  30 s; 3 s through a pooler, where each check
//                                                                          raises ids, too (ADR 0032)
//   write report histograms, count jobs by type                            10 s
//   count the horizon (jobs due per slot of time), one type in each turn   10 s after the last type
//   store days of time zones for reports                                   5 min
//   create history tables, drop an old one, delete dead nodes, removed
//   types and old reports                                                  10 min; 30 s while more are due; 1 min after
//                                                                          a failure
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/worker_thread.h"
#include "core/day_witness.h"
#include "core/report_histogram.h"
#include "ports/member_store.h"
#include "ports/type_store.h"
#include "postgres/pg_maintenance.h"
#include "postgres/session.h"
#include "tocsin/clock.h"

namespace tocsin {

struct HousekeepingConfig {
  SessionConfig session;
  std::map<std::string, int> retain_days;  // days for which history is kept, by final status: done, cancelled, dead
  NodeId node_id = 0;                      // of this node
};

// Most data members tell when each task was done last, or is due. Thread: owner only, except reload_types() (any).
class Housekeeping {
 public:
  // Called on the housekeeping thread, and by start().
  struct Callbacks {
    std::function<Status()> check;  // Error invalid: another database answers than the registered one
    // Called once per new connection, when its check has passed and the history tables of done and dead jobs exist:
    // jobs may finish now.
    std::function<void()> checked;
    std::function<void(const Error&)> refused;       // after a check that failed with Error invalid
    std::function<Status(TypeStore&)> reload_types;  // reads the registry, or mirrors it into this database
    std::function<void()> answered;                  // the database has answered: at least every 3 s if no task fails
    std::function<void(const Error&)> failed;        // a task failed: the rest is left to the next turn
    std::function<std::vector<ReportHistogram>()> take_histograms;  // removes and returns the histograms to write
    std::function<void(std::vector<TypeState>)> counted;            // numbers of jobs by type, newly read
    // Called when it changes: the number of history tables that are past their retention by the database's clock alone.
    // They are kept until a second source of time agrees (core/day_witness.h).
    std::function<void(std::size_t tables)> withheld = [](std::size_t) {};
  };
  Housekeeping(HousekeepingConfig config, const Clock& clock, Callbacks callbacks);
  ~Housekeeping() { stop(); }

  // Checks the database, reads the types and starts the thread. Error: the check failed or the database did not answer;
  // no thread runs.
  Status start();
  // Starts the thread at once; it checks and reads when the database answers.
  void start_later();
  void reload_types();  // at the next turn, which begins at once
  // Ends the thread after the turn that runs now, and writes the last histograms unless the last turn failed.
  void stop() { worker_.stop(); }

 private:
  void run();
  Status prepare();
  Status prepare_history();
  bool is_check_due() const;
  Status fold_and_reload(bool reload);
  Status maintain();
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
  bool has_counts_to_fold_ = true;  // as the last turn found
  bool is_prepared_ = false;        // checked, with history tables
  bool are_cancels_held_ = false;   // a lock kept the history tables of cancelled jobs from being made
  bool is_check_wanted_ = true;     // something has failed
  DayWitness witness_;
  std::size_t withheld_ = 0;
  MonoTime checked_at_{};
  std::uint64_t prepared_connection_ = 0;
  MonoTime next_maintenance_;               // of maintain()
  MonoTime next_flush_;                     // of histograms
  MonoTime next_horizon_;                   // the horizon: jobs due per slot of time
  MonoTime next_zone_days_;                 // days of time zones other than UTC, for reports
  std::vector<ReportHistogram> unflushed_;  // sent, not confirmed: sent again under the number `flushes_`
  std::int64_t flushes_ = 0;
  WorkerThread worker_;
};

}  // namespace tocsin
