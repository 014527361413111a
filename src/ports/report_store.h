// ReportStore: reads for callers and operators from one database: single jobs, lists, counts, reports. The firing path
// does not use it. Implemented by PgReportStore (src/postgres) and by a fake in tests/support.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ports/biz_type.h"
#include "ports/client_store.h"
#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

// Selects the jobs that meet all conditions given. Newest first (by job_id, descending). `below`: only jobs with
// smaller ids, so the last id of a page continues the list.
struct JobFilter {
  std::optional<std::string> biz_id;
  std::optional<TypeId> type_id;
  std::optional<JobStatus> status;
  std::optional<WallTime> from, to;  // action_time in [from, to)
  std::optional<JobId> below;
  int limit = 100;  // 1..1000
  // Leaves out rows of shards that do not live in this database: a moving shard has copies in two.
  bool is_local_only = false;
};

struct JobList {
  std::vector<Job> jobs;
  bool is_cut = false;  // the attributes reached kMostBytesOfList: jobs that fit the filter may follow the last one
};

struct TypeCount {
  TypeId type_id = 0;
  JobStatus status = JobStatus::pending;
  std::int64_t n = 0;
};

// What /readyz and the dashboard show of one database.
struct DatabaseInfo {
  std::string name;  // host:port/dbname, without user and password
  int shards = 0;    // of the installation
  int schema_version = 0;
  WallTime now{};  // the database's clock
};

// The reports of docs/reports.md. Most are views of the schema tocsin, named report_hour to report_delay, horizon,
// backlog and audit. These have no view:
//  - dead_now: the jobs that are dead now among the 10,000 that were created last, by type and reason
//  - recent: about the last quarter of an hour, by type; recent_of_all: for all types in one row
//  - next: in one row, how many jobs are due from `from` to `to`, both required
enum class Report {
  hour,
  day,
  lateness,
  duration,
  slo,
  dead,
  dead_now,
  outcome,
  delay,
  horizon,
  backlog,
  audit,
  recent,
  recent_of_all,
  next
};

struct ReportQuery {
  Report report = Report::hour;
  std::optional<std::string> biz_type;
  std::optional<WallTime> from, to;  // rows of [from, to); dead_now, recent and recent_of_all ignore these
  std::string tz;                    // Report::day only: the time zone of its days; empty: UTC
  std::string width;                 // Report::horizon only: minute, hour or day; empty: slots of every width
  bool is_only_database = false;     // Report::day with tz only: no rows of other databases will be merged with these,
                                     // so they have percentiles instead of histograms
  // The key columns of the last row seen, as texts, in the report's order; empty: from the beginning.
  std::vector<std::string> after;
  int limit = 100;
};

// Thread: owner only (each thread has its own).
class ReportStore {
 public:
  virtual ~ReportStore() = default;
  // The job, live or finished; nullopt: there is none. Here and in list() jobs have type_id and no biz_type.
  virtual Result<std::optional<Job>> find(JobId job) = 0;
  // Ends with the job with which the attributes reach kMostBytesOfList.
  static constexpr int kMostBytesOfList = ClientStore::kMostBytesOfList;
  virtual Result<JobList> list(const JobFilter& filter) = 0;
  virtual Result<std::vector<TypeCount>> counts() = 0;    // live and finished jobs, exact: every write keeps count
  virtual Result<std::int64_t> overdue(int at_most) = 0;  // live jobs whose fire_at has passed, counted up to at_most
  // For each of `shards`, in order: how many pending jobs are due before now + `within`, counted up to at_most.
  // `is_overdue_counted`: whether jobs that are due already count.
  virtual Result<std::vector<std::int64_t>> due_soon(std::span<const Shard> shards, Duration within, int at_most,
                                                     bool is_overdue_counted) = 0;
  virtual Result<DatabaseInfo> info() = 0;
  // At most `limit` rows as JSON objects, whose members are the columns of the view. Instead of percentiles a row has
  // the histogram `buckets` (core/report_histogram.h), so that rows of several databases can be merged. The newest row
  // comes first (of the horizon report: the earliest), then by the other keys. slo, delay, backlog, dead_now, recent
  // and next ignore `limit` and `after`, and return all rows, in any order. Error invalid, field "tz": unknown time
  // zone.
  virtual Result<std::vector<std::string>> report(const ReportQuery& query) = 0;
};

}  // namespace tocsin
