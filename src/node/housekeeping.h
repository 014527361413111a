// Housekeeping: the thread of a node that maintains one database. Every second while there are counts to add up or the
// last round failed, else every 3 s, it runs a round of the tasks that are due: read the types (3 s), write report
// histograms and count jobs by type (10 s), check that the right database answers (DatabaseCheck; 30 s, or 3 s through
// a pooler), create the history tables of the next days and drop an old one (10 min). The tasks of several nodes may
// overlap. Owned by Database.
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
    // After the first check that passed on a connection, when the history tables exist, so that jobs may finish.
    std::function<void()> checked;
    std::function<void(const Error&)> refused;       // after a check that failed with Error invalid
    std::function<Status(TypeStore&)> reload_types;  // reads the registry, or mirrors it into this database
    std::function<void()> answered;                  // the database has answered: at least every 3 s if no task fails
    std::function<void(const Error&)> failed;        // a task failed: the rest is left to the next round
    std::function<std::vector<ReportHistogram>()> take_histograms;  // removes and returns the histograms to write
    std::function<void(std::vector<TypeState>)> counted;            // numbers of jobs by type, newly read
    // When it changes: the number of history tables that are past their retention by the database's clock alone. They
    // are kept until a second source of time agrees (DayWitness).
    std::function<void(std::size_t days)> withheld = [](std::size_t) {};
  };
  Housekeeping(HousekeepingConfig config, const Clock& clock, Callbacks callbacks);
  ~Housekeeping() { stop(); }

  // Checks the database, reads the types and starts the thread. Error: the check failed or the database did not answer;
  // no thread runs.
  Status start();
  // Starts the thread at once; it checks and reads when the database answers.
  void start_later();
  void reload_types();  // after the round that runs now, on the housekeeping thread
  // Ends the thread after the round that runs now, and writes the last histograms unless the last round failed.
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
  bool is_folding_ = true;       // the last round found counts to add up
  bool is_prepared_ = false;     // checked, with history tables
  bool is_check_wanted_ = true;  // something has failed
  DayWitness witness_;
  std::size_t withheld_ = 0;
  MonoTime checked_at_{};
  std::uint64_t prepared_connection_ = 0;
  MonoTime next_slow_round_;                // history tables, and deletion of what is old
  MonoTime next_flush_;                     // of histograms
  MonoTime next_horizon_;                   // the horizon: jobs due per slot of time
  MonoTime next_zone_days_;                 // days of time zones other than UTC, for reports
  std::vector<ReportHistogram> unflushed_;  // sent, but the answer was lost: they are sent again under the same number
  std::int64_t flushes_ = 0;
  WorkerThread worker_;
};

}  // namespace tocsin
