#include "postgres/duplicate_ids.h"

#include "postgres/text.h"

namespace tocsin {

bool renumber_finished_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> jobs) {
  const auto taken = session.last_server_error().duplicate_id();
  if (!taken) return false;
  PgArray ids;
  ids.add(taken->job_id);
  for (const JobId id : jobs)
    if (id != taken->job_id) ids.add(id);
  const auto freed = tx.exec_params("SELECT tocsin.renumber_finished_jobs($1::bigint[])", ids.literal());
  for (const auto& row : freed)
    if (session.config().on_duplicate_id) session.config().on_duplicate_id(row[0].as<JobId>());
  return !freed.empty();
}

bool has_freed_ids(Session& session, const Error& error, std::span<const JobId> jobs) {
  if (error.code != ErrorCode::conflict) return false;
  const auto freed =
      session.write<bool>([&](pqxx::nontransaction& tx) { return renumber_finished_jobs(session, tx, jobs); });
  return freed && *freed;
}

}  // namespace tocsin
