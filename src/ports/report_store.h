// Reads for callers and operators: single jobs, lists, counts, reports; and TypeStore, the type registry. The firing
// path does not use them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ports/biz_type.h"
#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

// Newest first (by job_id, descending); `below` continues after the last id seen.
struct JobFilter {
  std::optional<std::string> biz_id;
  std::optional<TypeId> type_id;
  std::optional<JobStatus> status;
  std::optional<WallTime> from, to;  // action_time in [from, to)
  std::optional<JobId> below;
  int limit = 100;  // 1..1000
  // Leaves out rows of shards that do not live in this database: copies of a moving shard.
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
  int shards = 0;
  int schema_version = 0;
  WallTime now{};
};

// The reports of docs/reports.md: each a view of the same name; the last 15 minutes by type, or of all types; and what
// is due next, from `from` to `to`, in one row.
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
  std::optional<WallTime> from, to;  // slot in [from, to); ignored by reports without a time
  std::string tz;                    // of Report::day: the time zone of its days; empty: UTC
  bool is_alone = false;             // of Report::day with tz: the only database; percentiles in place of histograms
  // The keys of the last row seen, as texts, in the order of the report; empty: from the beginning.
  std::vector<std::string> after;
  int limit = 100;
};

// Thread: owner only (each thread has its own).
class ReportStore {
 public:
  virtual ~ReportStore() = default;
  virtual Result<std::optional<Job>> find(JobId job) = 0;
  virtual Result<std::vector<Job>> list(const JobFilter& filter) = 0;
  virtual Result<std::vector<TypeCount>> counts() = 0;    // exact, from rollups
  virtual Result<std::int64_t> overdue(int at_most) = 0;  // live jobs whose time has passed, counted up to at_most
  // Pending jobs of each of `shards`, in their order, that are due before `within` from now; each counted up to
  // at_most.
  virtual Result<std::vector<std::int64_t>> due_soon(std::span<const Shard> shards, Duration within, int at_most) = 0;
  virtual Result<bool> has_live_jobs(TypeId type) = 0;
  virtual Result<DatabaseInfo> info() = 0;
  // At most `limit` rows as JSON objects, whose members are the columns of the view; where it has percentiles, the
  // histogram in `buckets` instead (see core/report_histogram.h), for parts of several databases to be merged. In the
  // order of the report: newest first and then by the other keys; the horizon earliest first. Reports without a time
  // come whole, in any order. Error invalid: an unknown time zone, with field "tz".
  virtual Result<std::vector<std::string>> report(const ReportQuery& query) = 0;
};

// The type registry, in the control database and mirrored in the others.
// Thread: owner only (each thread has its own).
class TypeStore {
 public:
  virtual ~TypeStore() = default;
  // By name. A removed type stays in the registry as long as jobs may name it, but is shown only on request.
  enum class Removed { left_out, included };
  virtual Result<std::vector<BizType>> list(Removed removed = Removed::left_out) = 0;
  // The type of this name, unless it was removed.
  virtual Result<std::optional<BizType>> find(const std::string& name) = 0;
  // The types that changed after `time` by their gmt_modified, and the version of the whole registry; removed types
  // included. A caller whose older list with these changes has another version lists all types again: a change that was
  // on its way may be older than what the caller has seen, and types are forgotten.
  struct Changes {
    std::vector<BizType> types;
    RegistryVersion version;
  };
  virtual Result<Changes> changed_since(WallTime time) = 0;
  // Whether one of these names is registered. Costs an index look-up per name, whatever the size of the registry.
  virtual Result<bool> has_any(std::span<const std::string> names, Removed removed) = 0;
  // Creates or replaces by name (pause state stays). Returns the stored type and whether it is new.
  struct PutReply {
    BizType type;
    bool is_new = false;
  };
  virtual Result<PutReply> put(const BizType& type) = 0;
  enum class RemoveReply { removed, has_live_jobs, not_found };
  virtual Result<RemoveReply> remove(const std::string& name) = 0;
  // paused = false resumes. nullopt: not found.
  virtual Result<std::optional<BizType>> set_paused(const std::string& name, bool paused,
                                                    std::optional<WallTime> until) = 0;
  // Copies these types, ids included, into a database that is not the control database; a newer version there stays
  // (every change of a type moves its gmt_modified forward). Safe to repeat.
  virtual Status mirror(std::span<const BizType> types) = 0;
};

}  // namespace tocsin
