// PgReportStore: reads single jobs, lists, counts and reports of one PostgreSQL database. Implements ReportStore, which
// says what each call returns, its units and Errors (ports/report_store.h). Each thread of RequestPool, which serves
// requests, has one. Thread: the one that owns the session.
#pragma once

#include "ports/report_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgReportStore final : public ReportStore {
 public:
  // `session` must outlive the store. `shards`: the installation's shard count. REQUIRES: the session has
  // SessionConfig::has_pinned_plans = false, because the best plan of a list depends on its filter and on the sizes of
  // the tables.
  PgReportStore(Session& session, int shards) : session_(session), shards_(shards) {}
  Result<std::optional<Job>> find(JobId job) override;
  Result<JobList> list(const JobFilter& filter) override;
  Result<std::vector<TypeCount>> counts() override;
  Result<std::int64_t> overdue(int at_most) override;
  Result<std::vector<std::int64_t>> due_soon(std::span<const Shard> shards, Duration within, int at_most,
                                             bool is_overdue_counted) override;
  Result<DatabaseInfo> info() override;
  Result<std::vector<std::string>> report(const ReportQuery& query) override;  // pg_reports.cc

 private:
  Session& session_;
  const int shards_;
};

}  // namespace tocsin
