// ReportStore: reads for callers and operators from one database: single jobs, lists, counts, reports. TypeStore: the
// type registry. The firing path does not use them. Implemented by PgReportStore and PgTypeStore (src/postgres) and by
// fakes in tests/support.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ports/biz_type.h"
#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

// Selects jobs, all conditions together. Newest first (by job_id, descending); `below` continues after the last id
// seen.
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

// The reports of docs/reports.md. Most are views of the schema tocsin: report_hour to report_delay, horizon, backlog
// and audit. Without a view: dead_now (jobs that are dead now, by type and reason; of the 10,000 created last), recent
// (about the last quarter of an hour, by type), recent_of_all (the same in one row) and next (how many jobs are due
// from `from` to `to`, both required, in one row).
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
  std::optional<WallTime> from, to;  // rows of [from, to); dead_now, recent and recent_of_all ignore it
  std::string tz;                    // Report::day only: the time zone of its days; empty: UTC
  std::string width;                 // Report::horizon only: minute, hour or day; empty: slots of every width
  bool is_alone = false;             // Report::day with tz only: no rows of other databases will be merged with these,
                                     // so they have percentiles instead of histograms
  // The keys of the last row seen, as texts, in the order of the report; empty: from the beginning.
  std::vector<std::string> after;
  int limit = 100;
};

// Thread: owner only (each thread has its own).
class ReportStore {
 public:
  virtual ~ReportStore() = default;
  // The job, live or finished, with type_id and without biz_type; nullopt: there is none. So are the jobs of list().
  virtual Result<std::optional<Job>> find(JobId job) = 0;
  virtual Result<std::vector<Job>> list(const JobFilter& filter) = 0;
  virtual Result<std::vector<TypeCount>> counts() = 0;    // live and finished jobs, exact: every write keeps count
  virtual Result<std::int64_t> overdue(int at_most) = 0;  // live jobs whose fire_at has passed, counted up to at_most
  // For each of `shards`, in order: how many pending jobs are due before now + `within`, those that are overdue
  // included or not, counted up to at_most.
  virtual Result<std::vector<std::int64_t>> due_soon(std::span<const Shard> shards, Duration within, int at_most,
                                                     bool is_overdue_counted) = 0;
  // Whether the type has live jobs, or entries in the outbox, in this database.
  virtual Result<bool> has_live_jobs(TypeId type) = 0;
  virtual Result<DatabaseInfo> info() = 0;
  // At most `limit` rows as JSON objects, whose members are the columns of the view. In place of percentiles a row has
  // the histogram `buckets` (core/report_histogram.h), so that rows of several databases can be merged. Newest first,
  // then by the other keys; the horizon earliest first. slo, delay, backlog, dead_now, recent and next ignore `limit`
  // and `after`: they come whole, in any order. Error invalid, field "tz": unknown time zone.
  virtual Result<std::vector<std::string>> report(const ReportQuery& query) = 0;
};

// The type registry in the control database, or its mirror in another. put(), remove() and set_paused() are for the
// control database, mirror() is for the others.
// Thread: owner only (each thread has its own).
class TypeStore {
 public:
  virtual ~TypeStore() = default;
  // All types, sorted by name. A removed type stays in the registry as long as jobs may name it.
  enum class Removed { left_out, included };
  virtual Result<std::vector<BizType>> list(Removed removed = Removed::left_out) = 0;
  // The type of this name, unless it was removed.
  virtual Result<std::optional<BizType>> find(const std::string& name) = 0;
  // The types whose gmt_modified is later than `time`, removed ones included, and the version of the whole registry. If
  // a caller's older list with these changes has another version, it must list all types again: a change may have been
  // committed after a newer one, or a type was deleted.
  struct Changes {
    std::vector<BizType> types;
    RegistryVersion version;
  };
  virtual Result<Changes> changed_since(WallTime time) = 0;
  // Whether one of these names is registered. Costs an index look-up per name.
  virtual Result<bool> has_any(std::span<const std::string> names, Removed removed) = 0;
  // Creates or replaces the type of this name; its id and pause state stay. Ignores type_id, the pause state and the
  // times of `type`. Returns the stored type. is_new: it was not there, or removed.
  struct PutReply {
    BizType type;
    bool is_new = false;
  };
  virtual Result<PutReply> put(const BizType& type) = 0;
  // Marks the type as removed, unless it has live jobs or outbox entries in this database; the caller asks the others.
  enum class RemoveReply { removed, has_live_jobs, not_found };
  virtual Result<RemoveReply> remove(const std::string& name) = 0;
  // Pauses the type until `until` (nullopt: until it is resumed), or resumes it (paused = false). nullopt: not found.
  virtual Result<std::optional<BizType>> set_paused(const std::string& name, bool paused,
                                                    std::optional<WallTime> until) = 0;
  // Copies these types, ids included, into this database, which is not the control database; a copy with the same or a
  // later gmt_modified stays. Safe to repeat.
  virtual Status mirror(std::span<const BizType> types) = 0;
};

}  // namespace tocsin
